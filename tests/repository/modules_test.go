package repository

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
	modules "golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// importable returns the folders of the modules that users import, from hack/modules.sh.
func importable(t *testing.T) []string {
	t.Helper()
	_, list, _ := strings.Cut(read(t, "hack/modules.sh"), "modules=(. ")
	list, _, ok := strings.Cut(list, ")")
	if !ok {
		t.Fatal("hack/modules.sh has no list of modules that begins with the product's")
	}
	return strings.Fields(list)
}

// outside is a program of a user.
const outside = `package main

import (
	"fmt"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/sdk/batch"
	"github.com/hykube/hykube/sdk/steps"
)

func main() { fmt.Println(v1alpha1.Plan{}.Name, batch.Apply, steps.OnBehalf) }
`

// TestUsersImportTheModules builds a program outside of the repository, from the modules as a proxy serves them. Replacements in
// them have no effect there.
func TestUsersImportTheModules(t *testing.T) {
	t.Parallel()
	proxy, program := t.TempDir(), t.TempDir()
	version := "v0.1.0-" + digest(t)
	main := "module example.com/outside\n\ngo " + goVersion(t) + "\n"
	var sums bytes.Buffer
	for _, folder := range importable(t) {
		serveModule(t, proxy, folder, version)
		main += fmt.Sprintf("require %s/%s %s\n", module, folder, version)
		sums.WriteString(read(t, folder+"/go.sum"))
	}
	for name, text := range map[string]string{"main.go": outside, "go.mod": main, "go.sum": sums.String()} {
		if err := os.WriteFile(filepath.Join(program, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-mod=mod", "-o", os.DevNull, ".")
	build.Dir = program
	build.Env = append(os.Environ(), "GOPROXY=file://"+proxy+","+goEnv(t, "GOPROXY"), "GONOSUMDB="+module+","+goEnv(t, "GONOSUMDB"), "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if mod, err := os.ReadFile(filepath.Join(program, "go.mod")); err != nil || bytes.Contains(mod, []byte("replace")) {
		t.Errorf("%v\n%s", err, mod)
	}
}

// serveModule writes a module into the folder of a proxy. Of the other modules, it requires the same version.
func serveModule(t *testing.T, proxy, folder, version string) {
	t.Helper()
	mod, err := modfile.Parse("go.mod", []byte(read(t, folder+"/go.mod")), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range mod.Require {
		if strings.HasPrefix(r.Mod.Path, module+"/") {
			if err := mod.AddRequire(r.Mod.Path, version); err != nil {
				t.Fatal(err)
			}
		}
	}
	text, err := mod.Format()
	if err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(t.TempDir(), "module")
	if err := os.CopyFS(source, os.DirFS(filepath.Join(root, folder))); err != nil {
		t.Fatal(err)
	}
	at := modules.Version{Path: module + "/" + folder, Version: version}
	dir := filepath.Join(proxy, at.Path, "@v")
	forget(t, at)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		filepath.Join(source, "go.mod"): string(text), filepath.Join(dir, version+".mod"): string(text),
		filepath.Join(dir, version+".info"): fmt.Sprintf(`{"Version":%q}`, version), filepath.Join(dir, "list"): version + "\n",
	} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	archive, err := os.Create(filepath.Join(dir, version+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	if err := zip.CreateFromDir(archive, at, source); err != nil {
		t.Fatal(err)
	}
}

// forget removes a module from the cache of modules when the test ends. The cache is that of all builds, because the packages of
// another one would be compiled again.
func forget(t *testing.T, m modules.Version) {
	t.Helper()
	cache := goEnv(t, "GOMODCACHE")
	t.Cleanup(func() {
		extracted := filepath.Join(cache, m.String())
		_ = filepath.WalkDir(extracted, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				err = os.Chmod(path, 0o700)
			}
			return err
		})
		downloaded, err := filepath.Glob(filepath.Join(cache, "cache", "download", m.Path, "@v", m.Version+".*"))
		if err != nil {
			t.Error(err)
		}
		for _, path := range append(downloaded, extracted) {
			if err := os.RemoveAll(path); err != nil {
				t.Error(err)
			}
		}
	})
}

// digest returns a digest of the files of the modules.
func digest(t *testing.T) string {
	t.Helper()
	h := sha256.New()
	for _, path := range list(t, "") {
		for _, folder := range importable(t) {
			if strings.HasPrefix(path, folder+"/") {
				fmt.Fprintf(h, "%s\x00%s\x00", path, read(t, path))
			}
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:6])
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func goVersion(t *testing.T) string {
	t.Helper()
	mod, err := modfile.Parse("go.mod", []byte(read(t, "go.mod")), nil)
	if err != nil {
		t.Fatal(err)
	}
	return mod.Go.Version
}
