package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"
	"golang.org/x/mod/sumdb/dirhash"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/provider"
	"github.com/hykube/hykube/internal/provider/contain"
	"github.com/hykube/hykube/internal/schema"
	"github.com/hykube/hykube/tests/conformance/cloud"
)

// waitLimit is the maximum time that a test waits on a busy machine.
const waitLimit = 30 * time.Second

// TestMain builds the plugins once and removes them. shared holds the worlds of the cases that leave their provider
// running.
var (
	plugins string
	shared  = map[string]*world{}
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	var err error
	if plugins, err = os.MkdirTemp("", "hykube-conformance-"); err == nil {
		defer os.RemoveAll(plugins)
		err = build()
	}
	for _, name := range []string{"conform5", "conform6"} {
		if err == nil {
			shared[name], err = newWorld(name, filepath.Join(plugins, "shared-"+name), cloud.Options{})
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		return 1
	}
	code := m.Run()
	for name, w := range shared {
		if err := w.pool.Close(context.Background()); err != nil {
			fmt.Fprintf(os.Stderr, "conformance: %s: %v\n", name, err)
			code = 1
		}
	}
	return code
}

func build() error {
	out, err := exec.Command("go", "build", "-buildvcs=false", "-ldflags", "-s -w", "-o", plugins+"/", "./cmd/...").CombinedOutput()
	if err != nil {
		return fmt.Errorf("build plugins: %w\n%s", err, out)
	}
	return nil
}

// world is a provider package, a cloud for it, and the pool that runs it.
type world struct {
	pkg   provider.Package
	dir   string
	cloud *cloud.Cloud
	pool  *provider.Pool
}

// newWorld creates a package in a directory.
func newWorld(name, dir string, options cloud.Options) (*world, error) {
	pkg := filepath.Join(dir, "package")
	if err := os.MkdirAll(pkg, 0o755); err != nil {
		return nil, err
	}
	exe := filepath.Join(pkg, "terraform-provider-"+name)
	if err := os.Link(filepath.Join(plugins, "terraform-provider-"+name), exe); err != nil {
		return nil, err
	}
	if options != (cloud.Options{}) {
		data, err := json.Marshal(options)
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(pkg, cloud.OptionsFile), data, 0o644); err != nil {
			return nil, err
		}
	}
	sum, err := dirhash.HashDir(pkg, "", dirhash.Hash1)
	if err != nil {
		return nil, err
	}
	// The cloud is a directory that the provider shares with the tests, so it has no sandbox.
	w := &world{
		pkg: provider.Package{
			Source: provider.Source{Hostname: "registry.terraform.io", Namespace: "hykube", Type: name}, Version: "1.0.0", Executable: exe, Checksum: sum,
		},
		dir: filepath.Join(dir, "cloud"), pool: provider.NewPool(provider.PoolConfig{StopTimeout: 20 * time.Second, Containment: contain.New(contain.Config{Mode: contain.Off})}),
	}
	w.cloud, err = cloud.Open(w.dir)
	return w, err
}

// ownWorld returns a world for a case that ends its provider, or that needs other options.
func ownWorld(t *testing.T, name string, options cloud.Options) *world {
	t.Helper()
	// Unlike a test's own directory, this one is on the same file system as the plugins, which are hard links.
	dir, err := os.MkdirTemp(plugins, "own-")
	must(t, err)
	w, err := newWorld(name, dir, options)
	must(t, err)
	t.Cleanup(func() {
		if err := w.pool.Close(context.Background()); err != nil {
			t.Errorf("close pool: %v", err)
		}
	})
	return w
}

// lease returns a process of the provider, configured for the cloud, until the test ends.
func (w *world) lease(t *testing.T) *provider.Lease {
	t.Helper()
	l, err := w.pool.Acquire(t.Context(), w.pkg, provider.Configuration{Key: "only", Config: cty.ObjectVal(map[string]cty.Value{"directory": cty.StringVal(w.dir)})})
	must(t, err)
	t.Cleanup(l.Release)
	return l
}

// subject is the instance of a test. Its name is unique, so that the log shows which calls are about it.
type subject struct {
	*testing.T
	world *world
	lease *provider.Lease
	Type  instance.Type
	name  string
}

var unfit = regexp.MustCompile(`[^a-z0-9]+`)

// about starts a test of an instance of a type.
func about(t *testing.T, w *world, typeName string) *subject {
	t.Helper()
	l := w.lease(t)
	ty := instance.NewType(l.Schema, typeName)
	if ty.Schema == nil {
		t.Fatalf("the provider has no type %q", typeName)
	}
	ty.Provider = l
	return &subject{T: t, world: w, lease: l, Type: ty, name: nameOf(t)}
}

func nameOf(t *testing.T) string {
	return strings.Trim(unfit.ReplaceAllString(strings.ToLower(t.Name()), "-"), "-")
}

// attrs holds attributes of a configuration: cty.Values, strings, ints and bools by name.
type attrs map[string]any

// config returns a configuration of the subject.
func (s *subject) config(set attrs) instance.Config {
	s.Helper()
	all := attrs{"name": s.name}
	for k, v := range set {
		all[k] = v
	}
	v := object(s.T, s.Type.Schema.Block, all)
	return instance.Config{Written: v, Effective: v}
}

// object returns a value of a block, with null or an empty collection for each argument that is not set.
func object(t *testing.T, b *schema.Block, set attrs) cty.Value {
	t.Helper()
	out := map[string]cty.Value{}
	for _, a := range b.Attributes {
		out[a.Name] = cty.NullVal(a.Type)
	}
	for _, nb := range b.Blocks {
		out[nb.TypeName] = noBlocks(t, nb)
	}
	for name, v := range set {
		if _, ok := out[name]; !ok {
			t.Fatalf("there is no attribute %q", name)
		}
		out[name] = value(t, v)
	}
	return cty.ObjectVal(out)
}

func noBlocks(t *testing.T, nb *schema.NestedBlock) cty.Value {
	switch elem := nb.Block.ImpliedType(); nb.Nesting {
	case schema.NestingList:
		return cty.ListValEmpty(elem)
	case schema.NestingSet:
		return cty.SetValEmpty(elem)
	case schema.NestingMap:
		return cty.MapValEmpty(elem)
	case schema.NestingGroup:
		return object(t, nb.Block, nil)
	default:
		return cty.NullVal(elem)
	}
}

func value(t *testing.T, v any) cty.Value {
	t.Helper()
	switch v := v.(type) {
	case cty.Value:
		return v
	case string:
		return cty.StringVal(v)
	case int:
		return cty.NumberIntVal(int64(v))
	case bool:
		return cty.BoolVal(v)
	}
	t.Fatalf("no value: %v", v)
	return cty.NilVal
}

// nested returns a nested object with a key, a value and an ID; nil means null.
func nested(key, val, id any) cty.Value {
	str := func(v any) cty.Value {
		if s, ok := v.(string); ok {
			return cty.StringVal(s)
		}
		return cty.NullVal(cty.String)
	}
	return cty.ObjectVal(map[string]cty.Value{"key": str(key), "value": str(val), "id": str(id)})
}

func rule(port int) cty.Value {
	return cty.ObjectVal(map[string]cty.Value{"port": cty.NumberIntVal(int64(port)), "id": cty.NullVal(cty.String)})
}

// plan plans a change that must succeed.
func (s *subject) plan(prior instance.State, c instance.Config) *instance.Planned {
	s.Helper()
	p, _, err := s.Type.Plan(s.Context(), prior, c, false)
	must(s.T, err)
	return p
}

// apply plans and applies a change that must succeed.
func (s *subject) apply(prior instance.State, set attrs) instance.State {
	s.Helper()
	c := s.config(set)
	p := s.plan(prior, c)
	if p.Action == v1alpha1.ActionReplace {
		s.Fatal("the plan is to replace")
	}
	if p.Action == v1alpha1.ActionNoOp {
		return prior
	}
	o := s.Type.Apply(s.Context(), prior, p, c.Written)
	must(s.T, o.Err)
	return o.State
}

// create creates the subject.
func (s *subject) create(set attrs) instance.State {
	s.Helper()
	return s.apply(s.Type.Null(), set)
}

// destroy plans and applies a delete.
func (s *subject) destroy(prior instance.State) instance.Outcome {
	s.Helper()
	p, _, err := s.Type.PlanDelete(s.Context(), prior, nil)
	must(s.T, err)
	return s.Type.Apply(s.Context(), prior, p, p.Value)
}

// saved stores a state in the ledger and loads it, as between a plan and an apply.
func (s *subject) saved(st instance.State) instance.State {
	s.Helper()
	rec := s.record(st)
	back, err := s.Type.Load(s.Context(), rec)
	must(s.T, err)
	return back
}

// record returns a ledger record after its encoding as JSON.
func (s *subject) record(st instance.State) *ledger.State {
	s.Helper()
	var rec, back ledger.State
	must(s.T, s.Type.Record(&rec, st))
	data, err := json.Marshal(rec)
	must(s.T, err)
	must(s.T, json.Unmarshal(data, &back))
	return &back
}

// command changes how the provider treats the subject from now on.
func (s *subject) command(behaviours ...string) {
	s.Helper()
	must(s.T, s.world.cloud.Command(s.name, behaviours...))
}

// calls returns the calls about the subject.
func (s *subject) calls(rpc string) []cloud.Call {
	s.Helper()
	return s.world.calls(s.T, rpc, s.name)
}

func (w *world) calls(t *testing.T, rpc, name string) []cloud.Call {
	t.Helper()
	all, err := w.cloud.Calls()
	must(t, err)
	var out []cloud.Call
	for _, c := range all {
		if c.RPC == rpc && (name == "" || c.Name == name) {
			out = append(out, c)
		}
	}
	return out
}

// await waits until a condition holds.
func await(t *testing.T, what string, so func() bool) {
	t.Helper()
	deadline := time.After(waitLimit)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited %s for %s", waitLimit, what)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// refused expects an error that contains a text. An empty text means no error.
func refused(t *testing.T, err error, text string) {
	t.Helper()
	switch {
	case text == "" && err != nil:
		t.Fatalf("error %q, want none", err)
	case text != "" && err == nil:
		t.Fatalf("no error, want one with %q", text)
	case text != "" && !strings.Contains(err.Error(), text):
		t.Fatalf("error %q, want %q in it", err, text)
	}
}

// deferredFor expects a *instance.DeferredError.
func deferredFor(t *testing.T, err error, reason string) {
	t.Helper()
	d, ok := errors.AsType[*instance.DeferredError](err)
	if !ok || d.Reason != reason {
		t.Fatalf("error %v, want one that says %q is the reason to defer", err, reason)
	}
}

func same(t *testing.T, what string, got, want cty.Value) {
	t.Helper()
	if !got.RawEquals(want) {
		t.Errorf("%s:\n got %#v\nwant %#v", what, got, want)
	}
}

func warned(ds diag.Diagnostics) bool {
	for _, d := range ds {
		if d.Severity == v1alpha1.SeverityWarning {
			return true
		}
	}
	return false
}

func attribute(v cty.Value, name string) cty.Value {
	v, _ = v.UnmarkDeep()
	return v.GetAttr(name)
}

// protocols runs a test once for each protocol.
func protocols(t *testing.T, test func(t *testing.T, w *world, typeName string)) {
	for _, name := range []string{"conform6", "conform5"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, shared[name], name+"_thing")
		})
	}
}
