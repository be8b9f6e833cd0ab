package differential

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/hykube/hykube/api/v1alpha1"
)

// This file has the stories of Modules. Terraform's working directory has the files of the story, and Hykube has a Module
// with the same files. The name of the Module is removed from its addresses, so both sides have the same ones.

const (
	rootModule = "root"
	rootPrefix = "module." + rootModule + "."
)

// bundle returns the files of a Module with a file in each directory that names the sources of the providers.
func (c config) bundle(sources map[string]string) (map[string]string, error) {
	required := map[string]any{}
	for name, source := range sources {
		required[name] = map[string]any{"source": source}
	}
	text, err := json.Marshal(map[string]any{"terraform": map[string]any{"required_providers": required}})
	if err != nil {
		return nil, err
	}
	out := maps.Clone(c.Files)
	for file := range c.Files {
		out[path.Join(path.Dir(file), "required.tf.json")] = string(text)
	}
	return out, nil
}

// writeFiles writes the files of a Module to the working directory, and installs the modules that they call.
func (t *terraform) writeFiles(ctx context.Context, c config) error {
	files, err := c.bundle(t.sources)
	if err != nil {
		return err
	}
	delete(files, "required.tf.json") // main.tf.json has it
	if len(c.Inputs) > 0 {
		files["terraform.tfvars.json"] = text(c.Inputs)
	}
	for path := range t.written {
		if err := os.Remove(filepath.Join(t.dir, path)); err != nil {
			return err
		}
	}
	t.written = files
	for path, text := range files {
		file := filepath.Join(t.dir, path)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return err
		}
	}
	_, err = t.run(ctx, "get", "-no-color")
	return err
}

// writeModule records the files and the Module.
func (y *hykube) writeModule(ctx context.Context, c config) error {
	files, err := c.bundle(y.sources)
	if err != nil {
		return err
	}
	data, items := map[string]string{}, []any{}
	for i, path := range slices.Sorted(maps.Keys(files)) {
		key := fmt.Sprintf("file-%d", i)
		data[key] = files[path]
		items = append(items, map[string]any{"key": key, "path": path})
	}
	object := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": rootModule}, "data": data}
	if err := y.write(ctx, "/api/v1/namespaces/"+y.namespace+"/configmaps", object); err != nil {
		return err
	}
	spec := map[string]any{"source": map[string]any{"configMap": rootModule, "items": items}}
	if len(c.Inputs) > 0 {
		spec["inputs"] = c.Inputs
	}
	object = map[string]any{
		"apiVersion": "hykube.io/v1alpha1", "kind": "Module", "metadata": map[string]any{"name": rootModule}, "spec": spec,
	}
	return y.write(ctx, "/apis/hykube.io/v1alpha1/namespaces/"+y.namespace+"/modules", object)
}

// addresses returns the addresses of a plan's options as Hykube has them.
func (y *hykube) addresses(in []string) []string {
	if len(y.before.Files) == 0 {
		return in
	}
	out := make([]string, len(in))
	for i, at := range in {
		out[i] = rootPrefix + at
	}
	return out
}

// inModule returns the type of an address of a Module, and the name of its object.
func inModule(at string) (typ, name string) {
	path, rest, _ := v1alpha1.CutModulePath(rootPrefix + at)
	typ, name, _ = strings.Cut(strings.TrimPrefix(rest, "."), ".")
	return typ, v1alpha1.ModuleObjectName(path, name)
}

// moduleStates reads the records of the Module, in the form of Terraform's state. It has no data sources.
func (y *hykube) moduleStates(ctx context.Context, into map[string]*state) error {
	cmd := y.fixture.Command(ctx, "kubectl-hykube", "state", "pull", "--module", rootModule, "-n", y.namespace)
	var errs strings.Builder
	cmd.Stderr = &errs
	text, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("kubectl hykube state pull: %w\n%s", err, errs.String())
	}
	states, err := readStates(text)
	maps.Copy(into, states)
	return err
}

// dropData removes data sources from Terraform's states, and from the dependencies in them.
func dropData(states map[string]*state) {
	data := func(at string) bool { return strings.Contains("."+at, ".data.") }
	for at, s := range states {
		if s.Dependencies = slices.DeleteFunc(s.Dependencies, data); data(at) {
			delete(states, at)
		}
	}
}

// moduleValues are the planned values of a module and of those that it calls.
type moduleValues struct {
	Resources []map[string]any
	Children  []moduleValues `json:"child_modules"`
}

func (m moduleValues) all() []map[string]any {
	out := m.Resources
	for _, child := range m.Children {
		out = append(out, child.all()...)
	}
	return out
}

var keyOfInstance = regexp.MustCompile(`\[("(\\.|[^"\\])*"|[0-9]+)\]`)

// unkeyed returns an address without the keys of instances.
func unkeyed(at string) string { return keyOfInstance.ReplaceAllString(at, "") }
