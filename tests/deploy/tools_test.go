package deploy

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// root is the top directory of the repository, and chart that of the Helm chart.
const (
	root  = "../.."
	chart = root + "/deploy/helm/hykube"
)

// kubernetesVersion is the version for which Helm renders the chart, and that of the module in apiserver.
const kubernetesVersion = "1.36.3"

// tool is a program that the tests build.
type tool struct {
	name, module, pkg string
	build             func() (string, error)
}

// newTool returns the tool of a package in a module below this directory, with further flags of go build.
func newTool(name, module, pkg string, flags ...string) *tool {
	t := &tool{name: name, module: module, pkg: pkg}
	t.build = sync.OnceValues(func() (string, error) {
		path, err := filepath.Abs(filepath.Join(root, ".cache", "tools", "deploy", name))
		if err != nil {
			return "", err
		}
		cmd := exec.Command("go", slices.Concat([]string{"-C", module, "build", "-buildvcs=false", "-o", path}, flags, []string{pkg})...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=1") // as for the product, with which they share compiled packages
		out, err := cmd.CombinedOutput()
		if err != nil {
			return "", &toolError{"build " + name, out, err}
		}
		return path, nil
	})
	return t
}

type toolError struct {
	name string
	out  []byte
	err  error
}

func (e *toolError) Error() string {
	return e.name + ": " + e.err.Error() + "\n" + string(e.out)
}

var (
	helm3 = newTool("helm3", "helm", "helm.sh/helm/v3/cmd/helm")
	helm4 = newTool("helm4", "helm", "helm.sh/helm/v4/cmd/helm")
	// flux applies objects and waits for them with Flux's library.
	flux = newTool("flux", "flux", ".")
	// monitoring checks objects of the Prometheus Operator.
	monitoring = newTool("monitoring", "monitoring", ".")
)

// run runs the tool and returns its standard output. Its error has the standard error.
func (tool *tool) run(t *testing.T, stdin string, args ...string) (string, error) {
	t.Helper()
	path, err := tool.build()
	if err != nil {
		t.Fatal(err)
	}
	// The go command does not use a cached test result if a file that the test examined has changed. So call Stat for what
	// the tool reads.
	for _, dir := range []string{chart, "flux", "helm", "monitoring", "testdata"} {
		err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if err == nil {
				_, err = os.Stat(path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Stdin = strings.NewReader(stdin)
	// Helm must not see the cluster, the plugins or the repositories of the user.
	home := t.TempDir()
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + home}
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		return out.String(), &toolError{tool.name + " " + strings.Join(args, " "), append(out.Bytes(), errOut.Bytes()...), err}
	}
	return out.String(), nil
}
