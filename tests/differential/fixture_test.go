package differential

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/tests/conformance/shape"
	"github.com/hykube/hykube/tests/harness"
)

// fixture holds what all stories share: the binaries, one server, and the providers.
type fixture struct {
	*harness.Server
	// terraform is the path of Terraform or OpenTofu.
	terraform string
	// sources holds the addresses of the providers by name, and plugins their binaries.
	sources map[string]string
	plugins map[string]plugin

	mu      sync.Mutex
	plurals map[string]map[string]string
}

// plugin is a provider's binary.
type plugin struct {
	namespace, version, path string
	// options is the content of shape.OptionsFile beside the binary; nil for none.
	options []byte
}

// shapeOptions holds the seeds of the providers of generated types.
func shapeOptions() []byte {
	seeds := shapeSeeds()
	first, last := slices.Min(seeds), slices.Max(seeds)
	return fmt.Appendf(nil, `{"first": %d, "count": %d}`, first, last-first+1)
}

func newFixture(terraform string) (*fixture, error) {
	binaries, err := harness.Built()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "hykube-differential-")
	if err != nil {
		return nil, err
	}
	f := &fixture{terraform: terraform, sources: map[string]string{}, plugins: map[string]plugin{}, plurals: map[string]map[string]string{}}
	f.Server = &harness.Server{Binaries: harness.Binaries{Bin: binaries.Bin, Mirror: filepath.Join(dir, "mirror")}, Dir: dir}
	if err := f.findPlugins(binaries.Mirror); err != nil {
		return f, err
	}
	if err := f.layPlugins(); err != nil {
		return f, err
	}
	ctx := context.Background()
	if err := f.Start(ctx); err != nil {
		return f, err
	}
	var providers []harness.Provider
	for name, p := range f.plugins {
		// The clouds of the other providers, and the files of hashicorp/local, are directories of the tests, on Terraform's
		// side as well. These two reach nothing.
		open := name != "random" && name != "time"
		providers = append(providers, harness.Provider{Name: name, Source: p.namespace + "/" + name, Version: p.version, Open: open})
	}
	return f, f.Install(ctx, providers...)
}

// findPlugins returns every provider of the mirror and those of the conformance suite. Here, these follow the protocol.
func (f *fixture) findPlugins(mirror string) error {
	paths, err := filepath.Glob(filepath.Join(mirror, "registry.terraform.io", "*", "*", "*", "*", "terraform-provider-*"))
	if err != nil {
		return err
	}
	for _, path := range paths {
		parts := strings.Split(filepath.ToSlash(path), "/")
		n := len(parts)
		f.plugins[parts[n-4]] = plugin{namespace: parts[n-5], version: parts[n-3], path: path}
	}
	// The conformance suite's own providers are in no mirror.
	built := filepath.Join(f.Dir, "built") + string(filepath.Separator)
	if out, err := exec.Command("go", "build", "-o", built, "../conformance/cmd/...").CombinedOutput(); err != nil {
		return fmt.Errorf("build the conformance suite's providers: %w\n%s", err, out)
	}
	for _, name := range []string{"conform5", "conform6"} {
		f.plugins[name] = plugin{namespace: "hykube", version: "0.1.0", path: filepath.Join(built, "terraform-provider-"+name)}
	}
	// One binary speaks both protocols. Its name selects one.
	for _, name := range []string{"shape5", "shape6"} {
		f.plugins[name] = plugin{namespace: "hykube", version: "0.1.0", path: filepath.Join(built, "terraform-provider-shape"), options: shapeOptions()}
	}
	if _, ok := f.plugins["sim"]; !ok {
		return fmt.Errorf("there is no provider sim in %s: run make mirror", mirror)
	}
	for name, p := range f.plugins {
		f.sources[name] = "registry.terraform.io/" + p.namespace + "/" + name
	}
	return nil
}

// layPlugins copies the binaries to the mirror, from where both sides start them.
func (f *fixture) layPlugins() error {
	platform, err := exec.Command("go", "env", "GOOS", "GOARCH").Output()
	if err != nil {
		return fmt.Errorf("go env: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(f.plugins)) {
		p := f.plugins[name]
		dir := filepath.Join(f.Mirror, "registry.terraform.io", p.namespace, name, p.version, strings.Join(strings.Fields(string(platform)), "_"))
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
		p.path = file
		f.plugins[name] = p
	}
	return nil
}

// plural returns the API's plural for a kind of a provider.
func (f *fixture) plural(ctx context.Context, provider, kind string) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.plurals[provider] == nil {
		data, err := f.Client().Get().AbsPath("/apis/" + provider + ".hykube.io/v1").Do(ctx).Raw()
		if err != nil {
			return "", fmt.Errorf("list kinds of %s: %w", provider, err)
		}
		var list metav1.APIResourceList
		if err := decode(data, &list); err != nil {
			return "", err
		}
		f.plurals[provider] = map[string]string{}
		for _, r := range list.APIResources {
			if !strings.Contains(r.Name, "/") {
				f.plurals[provider][r.Kind] = r.Name
			}
		}
	}
	if p := f.plurals[provider][kind]; p != "" {
		return p, nil
	}
	return "", fmt.Errorf("provider %s has no kind %q", provider, kind)
}
