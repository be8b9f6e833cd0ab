package main

import (
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/tests/conformance/shape"
)

const (
	// kindsCount is the number of kinds of the generated schema, as many as the largest providers have.
	kindsCount = 1500
	// usedKinds is the number of kinds of which there is an object.
	usedKinds = 100
	// kubectlRepeats is the number of times that each command runs without a cache, and then with one.
	kubectlRepeats = 5
)

// measureKinds measures what a provider with many kinds costs: to install, in idle memory, and for the users of
// kubectl. The provider serves the schemas of a file, the output of `terraform providers schema -json`; without one,
// those of a generated file of the size of the largest providers.
func measureKinds(ctx context.Context, o options) (err error) {
	b, err := newBench(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	dir, err := os.MkdirTemp("", "hykube-bench-kinds-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file := o.schema
	if file == "" {
		file = filepath.Join(dir, "schema.json.gz")
		if err := writeSchema(file); err != nil {
			return err
		}
	}
	types, err := shape.ReadFile(file)
	if err != nil {
		return err
	}
	if err := placeShape(ctx, dir, file); err != nil {
		return err
	}
	b.Args = append(b.Args, "--provider-mirror", dir)
	if _, err := b.start(ctx); err != nil {
		return err
	}
	before, err := settledMemory(ctx, b)
	if err != nil {
		return err
	}
	name, _, _ := strings.Cut(types[0].Name, "_")
	installed, err := b.install(ctx, name)
	if err != nil {
		return err
	}
	kinds := fmt.Sprintf("%d kinds: ", len(types))
	b.results.add(measurement{What: kinds + "install", Value: installed.Seconds(), Unit: seconds, AtMost: 2})
	after, err := settledMemory(ctx, b)
	if err != nil {
		return err
	}
	b.results.add(measurement{What: kinds + "more idle memory (RSS)", Value: float64(after-before) / (1 << 20), Unit: mib, AtMost: 100})
	return measureKubectl(ctx, b, name, types)
}

// measureKubectl measures kubectl on a server with many kinds: with an empty cache, and with that of the command
// before.
func measureKubectl(ctx context.Context, b *bench, provider string, types []*shape.Shape) error {
	var free []string // kinds without required arguments
	for _, s := range types {
		if len(free) < usedKinds && !s.Block.Requires() {
			free = append(free, v1alpha1.KindOf(s.Name))
		}
	}
	manifest := func(i int, name string) string {
		return fmt.Sprintf("---\napiVersion: %s.hykube.io/v1\nkind: %s\nmetadata: {name: %s, namespace: default}\nspec: {}\n", provider, free[i], name)
	}
	var all strings.Builder
	for i := range free {
		all.WriteString(manifest(i, "used"))
	}
	if _, err := b.Kubectl(ctx, all.String(), "apply", "-f", "-"); err != nil {
		return err
	}
	for _, command := range []struct {
		stdin string
		args  []string
	}{
		{manifest(0, "one"), []string{"apply", "-f", "-"}},
		{"", []string{"explain", free[0] + ".spec"}},
		{"", []string{"api-resources"}},
		{"", []string{"get", "hykube", "-A"}},
	} {
		var cold, warm []time.Duration
		for i := range kubectlRepeats {
			command := command
			command.stdin = strings.Replace(command.stdin, "name: one", fmt.Sprintf("name: one-%d", i), 1)
			if err := os.RemoveAll(filepath.Join(b.Dir, "cache")); err != nil {
				return err
			}
			for _, times := range []*[]time.Duration{&cold, &warm} {
				began := time.Now()
				if _, err := b.Kubectl(ctx, command.stdin, command.args...); err != nil {
					return err
				}
				*times = append(*times, time.Since(began))
			}
		}
		what := fmt.Sprintf("%d kinds: kubectl %s", len(types), strings.Join(command.args, " "))
		b.results.add(measurement{What: what, Value: median(warm).Seconds(), Unit: seconds, AtMost: 0.5})
		b.results.took(what+", without kubectl's cache", 0, median(cold))
	}
	return nil
}

// settledMemory waits until the server is idle, and returns the memory of its process, without those of providers. The
// profile makes Go collect garbage now, as it does in an idle process every two minutes.
func settledMemory(ctx context.Context, b *bench) (int64, error) {
	select {
	case <-time.After(10 * time.Second):
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	if _, err := b.Kubectl(ctx, "", "get", "--raw", "/debug/pprof/heap?gc=1"); err != nil {
		return 0, err
	}
	statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", b.Pid()))
	if err != nil {
		return 0, fmt.Errorf("measure process (Linux only): %w", err)
	}
	var size, resident int64
	if _, err := fmt.Sscan(string(statm), &size, &resident); err != nil {
		return 0, fmt.Errorf("measure process: %w", err)
	}
	return resident * int64(os.Getpagesize()), nil
}

// install creates the provider and waits until its kinds are served.
func (b *bench) install(ctx context.Context, name string) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	began := time.Now()
	client := b.client.Resource(v1alpha1.SchemeGroupVersion.WithResource("providers"))
	p, err := client.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "hykube.io/v1alpha1", "kind": "Provider", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"source": "hykube/shape", "version": shapeVersion, "sandbox": map[string]any{"mode": "Off"}}, // it reads a file
	}}, metav1.CreateOptions{})
	if err != nil {
		return 0, fmt.Errorf("create provider: %w", err)
	}
	w, err := client.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name, ResourceVersion: p.GetResourceVersion()})
	if err != nil {
		return 0, fmt.Errorf("watch provider: %w", err)
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		changed, ok := e.Object.(*unstructured.Unstructured)
		switch {
		case ok && is(changed, v1alpha1.ConditionReady):
			return time.Since(began), nil
		case ok && is(changed, v1alpha1.ConditionStalled):
			return 0, fmt.Errorf("provider %q is stalled: %v", name, changed.Object["status"])
		}
	}
	return 0, fmt.Errorf("provider %q is not ready in time", name)
}

const shapeVersion = "1.0.0"

// placeShape builds the provider of generated shapes into a mirror, and makes it serve a file of schemas.
func placeShape(ctx context.Context, mirror, file string) error {
	dir := filepath.Join(mirror, "registry.terraform.io", "hykube", "shape", shapeVersion, runtime.GOOS+"_"+runtime.GOARCH)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-ldflags", "-s -w",
		"-o", filepath.Join(dir, "terraform-provider-shape_v"+shapeVersion), "./tests/conformance/cmd/terraform-provider-shape")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build provider: %w\n%s", err, out)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	options, err := json.Marshal(shape.Options{File: filepath.Base(file)})
	if err != nil {
		return err
	}
	return cmp.Or(os.WriteFile(filepath.Join(dir, filepath.Base(file)), data, 0o644), os.WriteFile(filepath.Join(dir, shape.OptionsFile), options, 0o644))
}

// writeSchema writes a schema in the form of `terraform providers schema -json`, with as many types, attributes, blocks
// and words as that of a large cloud's provider: 18 attributes a type, a sixth of them computed, and three blocks.
func writeSchema(path string) (err error) {
	type object = map[string]any
	types := []any{"string", "string", "string", "bool", "number", []any{"list", "string"}, []any{"map", "string"}}
	attributes := func(prefix string, n int) object {
		out := object{}
		for i := range n {
			out[fmt.Sprintf("%s_%02d", prefix, i)] = object{
				"type": types[i%len(types)], "optional": i%6 != 0, "computed": i%6 == 0,
				"description": strings.Repeat("Words that explain the argument. ", 3),
			}
		}
		return out
	}
	resources := object{}
	for i := range kindsCount {
		blocks := object{}
		for j := range 3 {
			blocks[fmt.Sprintf("block_%d", j)] = object{"nesting_mode": "list", "block": object{"attributes": attributes("inner", 3)}}
		}
		top := attributes("argument", 9)
		top["id"] = object{"type": "string", "computed": true}
		resources[fmt.Sprintf("large_service_type_%04d", i)] = object{"block": object{"attributes": top, "block_types": blocks}}
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	z := gzip.NewWriter(f)
	err = json.NewEncoder(z).Encode(object{"provider_schemas": object{"large": object{"resource_schemas": resources}}})
	return errors.Join(err, z.Close())
}
