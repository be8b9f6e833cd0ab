package differential

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/hykube/hykube/tests/conformance/shape"
)

const (
	// startLimit bounds how long the server may take to be ready, with its providers, on a busy machine.
	startLimit = 2 * time.Minute
	// stopLimit bounds how long it may take to stop.
	stopLimit = 20 * time.Second
)

// harness is what all stories share: the binaries, one server, and the providers.
type harness struct {
	// terraform is the path of Terraform or OpenTofu.
	terraform, terraformRC string
	bin, dir               string
	// sources are the addresses of the providers by name; plugins their binaries.
	sources map[string]string
	plugins map[string]plugin
	server  *exec.Cmd
	client  rest.Interface

	mu      sync.Mutex
	plurals map[string]map[string]string
}

// plugin is a provider's binary.
type plugin struct {
	namespace, version, path string
	// options are the contents of shape.OptionsFile beside it; nil when there is none.
	options []byte
}

// shapeOptions are the seeds that the types of the providers of generated types are made from.
func shapeOptions() []byte {
	seeds := shapeSeeds()
	first, last := slices.Min(seeds), slices.Max(seeds)
	return fmt.Appendf(nil, `{"first": %d, "count": %d}`, first, last-first+1)
}

// findTerraform finds OpenTofu or Terraform; empty when there is neither.
func findTerraform() string {
	for _, name := range []string{os.Getenv("HYKUBE_TERRAFORM"), "terraform", "tofu"} {
		if name == "" {
			continue
		}
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

func newHarness(terraform string) (*harness, error) {
	h := &harness{terraform: terraform, sources: map[string]string{}, plugins: map[string]plugin{}, plurals: map[string]map[string]string{}}
	root, err := filepath.Abs("../..")
	if err != nil {
		return nil, err
	}
	bin, mirror := os.Getenv("HYKUBE_BIN_DIR"), os.Getenv("HYKUBE_MIRROR_DIR")
	if bin == "" || mirror == "" {
		if out, err := exec.Command("make", "-s", "-C", root, "build", "mirror").CombinedOutput(); err != nil {
			return nil, fmt.Errorf("make build mirror: %w\n%s", err, out)
		}
		bin, mirror = filepath.Join(root, "bin"), filepath.Join(root, ".cache", "mirror")
	}
	h.bin = bin
	if h.dir, err = os.MkdirTemp("", "hykube-differential-"); err != nil {
		return nil, err
	}
	if err := h.findPlugins(mirror); err != nil {
		return nil, err
	}
	if err := h.layPlugins(); err != nil {
		return nil, err
	}
	return h, h.startServer()
}

// findPlugins takes every provider of the mirror, and those of the conformance suite, which behave here.
func (h *harness) findPlugins(mirror string) error {
	paths, err := filepath.Glob(filepath.Join(mirror, "registry.terraform.io", "*", "*", "*", "*", "terraform-provider-*"))
	if err != nil {
		return err
	}
	for _, path := range paths {
		parts := strings.Split(filepath.ToSlash(path), "/")
		n := len(parts)
		h.plugins[parts[n-4]] = plugin{namespace: parts[n-5], version: parts[n-3], path: path}
	}
	// The conformance suite's own providers are in no mirror.
	built := filepath.Join(h.dir, "built") + string(filepath.Separator)
	if out, err := exec.Command("go", "build", "-o", built, "../conformance/cmd/...").CombinedOutput(); err != nil {
		return fmt.Errorf("build the conformance suite's providers: %w\n%s", err, out)
	}
	for _, name := range []string{"conform5", "conform6"} {
		h.plugins[name] = plugin{namespace: "hykube", version: "0.1.0", path: filepath.Join(built, "terraform-provider-"+name)}
	}
	// One binary speaks both protocols: its name says which.
	for _, name := range []string{"shape5", "shape6"} {
		h.plugins[name] = plugin{namespace: "hykube", version: "0.1.0", path: filepath.Join(built, "terraform-provider-shape"), options: shapeOptions()}
	}
	if _, ok := h.plugins["sim"]; !ok {
		return fmt.Errorf("there is no provider sim in %s: run make mirror", mirror)
	}
	for name, p := range h.plugins {
		h.sources[name] = "registry.terraform.io/" + p.namespace + "/" + name
	}
	return nil
}

// layPlugins puts the same binaries where both sides look for them.
func (h *harness) layPlugins() error {
	platform, err := exec.Command("go", "env", "GOOS", "GOARCH").Output()
	if err != nil {
		return fmt.Errorf("go env: %w", err)
	}
	var rc strings.Builder
	rc.WriteString("provider_installation {\n  dev_overrides {\n")
	for _, name := range slices.Sorted(maps.Keys(h.plugins)) {
		p := h.plugins[name]
		dir := filepath.Join(h.dir, "mirror", "registry.terraform.io", p.namespace, name, p.version, strings.Join(strings.Fields(string(platform)), "_"))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		file := filepath.Join(dir, "terraform-provider-"+name+"_v"+p.version)
		data, err := os.ReadFile(p.path)
		if err != nil {
			return err
		}
		if err := os.WriteFile(file, data, 0o755); err != nil {
			return err
		}
		if p.options != nil {
			if err := os.WriteFile(filepath.Join(dir, shape.OptionsFile), p.options, 0o644); err != nil {
				return err
			}
		}
		fmt.Fprintf(&rc, "    %q = %q\n", h.sources[name], dir)
	}
	rc.WriteString("  }\n  direct {}\n}\n")
	h.terraformRC = filepath.Join(h.dir, "terraform.rc")
	return os.WriteFile(h.terraformRC, []byte(rc.String()), 0o600)
}

func (h *harness) kubeconfig() string { return filepath.Join(h.dir, "data", "admin.kubeconfig") }

func (h *harness) startServer() error {
	h.server = exec.Command(filepath.Join(h.bin, "hykube"), "server", "--data-dir", filepath.Join(h.dir, "data"), "--secure-port", "0",
		"--provider-mirror", filepath.Join(h.dir, "mirror"))
	log, err := os.Create(filepath.Join(h.dir, "server.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	h.server.Stdout, h.server.Stderr = log, log
	if err := h.server.Start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	if err := poll(ctx, func() error { return h.connect(ctx) }); err != nil {
		text, _ := os.ReadFile(log.Name())
		return fmt.Errorf("start server: %w\n%s", err, tail(string(text), 40))
	}
	for name, p := range h.plugins {
		body := fmt.Sprintf(`{"apiVersion":"hykube.io/v1alpha1","kind":"Provider","metadata":{"name":%q},"spec":{"source":%q,"version":%q}}`, name, p.namespace+"/"+name, p.version)
		if err := h.client.Post().AbsPath("/apis/hykube.io/v1alpha1/providers").SetHeader("Content-Type", "application/json").Body([]byte(body)).Do(ctx).Error(); err != nil {
			return fmt.Errorf("create provider %q: %w", name, err)
		}
	}
	for name := range h.plugins {
		err := poll(ctx, func() error {
			data, err := h.client.Get().AbsPath("/apis/hykube.io/v1alpha1/providers/" + name).Do(ctx).Raw()
			if err != nil {
				return err
			}
			var p struct {
				Status struct{ Conditions []metav1.Condition }
			}
			if err := decode(data, &p); err != nil {
				return err
			}
			for _, c := range p.Status.Conditions {
				if c.Type == "Ready" && c.Status == metav1.ConditionTrue {
					return nil
				}
			}
			return fmt.Errorf("provider %q isn't ready: %s", name, data)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (h *harness) connect(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", h.kubeconfig())
	if err != nil {
		return err
	}
	config.QPS = -1
	config.GroupVersion, config.NegotiatedSerializer = &schema.GroupVersion{}, scheme.Codecs.WithoutConversion()
	config.WarningHandler = rest.NoWarnings{}
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return err
	}
	h.client = client
	return client.Get().AbsPath("/readyz").Do(ctx).Error()
}

// plural is what the API calls a kind of a provider.
func (h *harness) plural(ctx context.Context, provider, kind string) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.plurals[provider] == nil {
		data, err := h.client.Get().AbsPath("/apis/" + provider + ".hykube.io/v1").Do(ctx).Raw()
		if err != nil {
			return "", fmt.Errorf("list kinds of %s: %w", provider, err)
		}
		var list metav1.APIResourceList
		if err := decode(data, &list); err != nil {
			return "", err
		}
		h.plurals[provider] = map[string]string{}
		for _, r := range list.APIResources {
			if !strings.Contains(r.Name, "/") {
				h.plurals[provider][r.Kind] = r.Name
			}
		}
	}
	if p := h.plurals[provider][kind]; p != "" {
		return p, nil
	}
	return "", fmt.Errorf("provider %s has no kind %q", provider, kind)
}

func (h *harness) close() error {
	var errs []error
	if h.server != nil && h.server.Process != nil {
		if err := h.server.Process.Signal(syscall.SIGTERM); err != nil {
			errs = append(errs, err)
		}
		late := time.AfterFunc(stopLimit, func() { _ = h.server.Process.Kill() })
		if err := h.server.Wait(); err != nil {
			errs = append(errs, fmt.Errorf("stop server: %w", err))
		}
		late.Stop()
	}
	if os.Getenv("HYKUBE_DIFFERENTIAL_KEEP") == "" {
		errs = append(errs, os.RemoveAll(h.dir))
	}
	return errors.Join(errs...)
}

func poll(ctx context.Context, try func() error) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-tick.C:
		}
	}
}

func tail(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
