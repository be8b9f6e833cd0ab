package storage

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/index"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/resourceset"
)

// moduleFiles are versions of a module, of which the last one has an error.
var moduleFiles = []string{
	`variable "n" { default = 1 }
resource "sim_a" "one" {}
resource "sim_a" "many" {
  count = var.n
  name  = "${sim_a.one.name}-${count.index}"
}
output "out" { value = sim_a.many }`,
	`variable "n" { default = 1 }
data "sim_b" "read" {}
resource "sim_a" "one" {
  count = 1
  name  = data.sim_b.read.name
}
resource "sim_a" "each" { for_each = toset([for i in range(var.n) : "k${i}"]) }
moved {
  from = sim_a.many
  to   = sim_a.moved
}
resource "sim_a" "moved" { count = 2 }
output "out" { value = sim_a.each }`,
	`resource "sim_a" {`,
}

func moduleOf(namespace, name string, uid types.UID) *v1alpha1.Module {
	m := &v1alpha1.Module{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: uid, Generation: 1}}
	m.TypeMeta = metav1.TypeMeta{APIVersion: "hykube.io/v1alpha1", Kind: "Module"}
	m.Spec.Source.ConfigMap = "files"
	return m
}

// files writes the ConfigMap with the files of the Modules of a namespace.
func (x *indexed) files(namespace, main string) {
	x.write(configMaps, namespace, "files", &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "files"},
		Data: map[string]string{"main.tf": main},
	})
}

// moduleStep makes a random write that concerns a Module: of the Module, of its files, or of the status or the record of a resource.
func (x *indexed) moduleStep() {
	namespace := []string{"team", "other"}[x.random.IntN(2)]
	uid := types.UID(fmt.Sprintf("module-%s-%d", namespace, x.random.IntN(2)))
	switch dice := x.random.IntN(10); {
	case dice == 0:
		x.write(modules, namespace, "shop", nil)
	case dice == 1:
		x.write(configMaps, namespace, "files", nil)
	case dice < 4:
		x.files(namespace, moduleFiles[x.random.IntN(len(moduleFiles))])
	case dice < 7:
		m := moduleOf(namespace, "shop", uid)
		m.Generation = int64(1 + x.random.IntN(3))
		m.Spec.Inputs = map[string]v1alpha1.JSON{"n": {Raw: fmt.Append(nil, x.random.IntN(3))}}
		m.Labels = map[string]string{"l": fmt.Sprint(x.random.IntN(2))}
		if x.random.IntN(4) == 0 {
			m.DeletionTimestamp = new(metav1.Unix(100, 0))
		}
		x.write(modules, namespace, "shop", m)
	default:
		sample := x.expanded(moduleOf(namespace, "shop", uid), moduleFiles[x.random.IntN(2)])
		s := sample.Sets[x.random.IntN(len(sample.Sets))]
		if s.Kind != "sim-a" || s.Len() == 0 {
			return
		}
		key := s.Key(x.random.IntN(s.Len()))
		x.instanceStep(v1alpha1.ObjectReference{
			APIVersion: "sim.hykube.io/v1", Kind: "sim-a", Namespace: namespace, Name: s.Object(key).GetName(),
			UID: s.UIDOf(key), Generation: s.GenerationOf(key), Set: "shop", SetUID: uid,
		})
	}
}

// expanded expands a Module as the index does.
func (x *indexed) expanded(m *v1alpha1.Module, main string) *resourceset.Module {
	x.t.Helper()
	out, err := resourceset.NewModule(m, 1, map[string][]byte{"main.tf": []byte(main)}, resourceset.Environment{
		Provider: func(v1alpha1.Mode, string, string) (string, error) { return "sim", nil },
	}, nil)
	if err != nil || out.Problem != "" {
		x.t.Fatal(err, out.Problem)
	}
	return out
}

// TestModulesKeepWhatTheyCannotExpand breaks the files of a Module with infrastructure, and removes the Provider. Its resources stay,
// and no plan may destroy them.
func TestModulesKeepWhatTheyCannotExpand(t *testing.T) {
	x := newIndexed(t)
	followed, l := x.newIndex(), ledger.New(x.s.KV())
	uid := types.UID("6c2ac8e8-bb07-4a5c-9c0c-2f9e7f3f9a10")
	m := moduleOf("team", "shop", uid)
	x.files("team", moduleFiles[0])
	x.write(modules, "team", "shop", m)
	sample := x.expanded(m, moduleFiles[0])
	one := sample.Sets[slices.IndexFunc(sample.Sets, func(s *resourceset.Set) bool { return s.Repeats == "" })]
	key := one.Key(0)
	ref := v1alpha1.ObjectReference{APIVersion: "sim.hykube.io/v1", Kind: "sim-a", Namespace: "team", Name: one.Object(key).GetName(),
		UID: one.UIDOf(key), Set: "shop", SetUID: uid}
	rec, err := l.Instance(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	rec.Object, rec.Attributes = ref, []byte(`{"id":"1"}`)
	if err := l.Save(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	expect := func(when, problem string, flags index.Flags) {
		t.Helper()
		v, err := followed.View(t.Context(), "team")
		if err != nil {
			t.Fatal(err)
		}
		i, ok := v.Slot(one.Address())
		if !ok || v.Nodes[i].Object.Flags&(index.Deleting|index.KeysUnknown) != flags || v.Nodes[i].Record == nil {
			t.Errorf("%s: the resource has an entry: %t, %+v", when, ok, v.Nodes)
		}
		if _, known := v.ModuleProblems["shop"]; known != (problem != "") {
			t.Errorf("%s: the problem is %q", when, v.ModuleProblems["shop"])
		}
	}
	expect("at first", "", 0)
	x.files("team", moduleFiles[2])
	expect("with an error in the files", "error", index.Deleting|index.KeysUnknown)
	x.files("team", moduleFiles[0])
	expect("without the error", "", 0)
	x.write(configMaps, "team", "files", nil)
	expect("without the files", "missing", index.Deleting|index.KeysUnknown)
	x.files("team", moduleFiles[0])
	x.write(modules, "team", "shop", nil)
	expect("without the Module", "", index.Deleting)
}

// TestReferencesToOutputsFollowTheModule expects that an object depends on what is behind an output, also after the files of the Module
// changed, without a write of the object.
func TestReferencesToOutputsFollowTheModule(t *testing.T) {
	x := newIndexed(t)
	followed := x.newIndex()
	user := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "sim.hykube.io/v1", "kind": "sim-a", "spec": map[string]any{"name": "${module.shop.out}"}}}
	user.SetNamespace("team")
	user.SetName("user")
	user.SetUID("user-uid")
	x.write(kschema.GroupResource{Group: "sim.hykube.io", Resource: "sim_a"}, "team", "user", user)
	x.write(modules, "team", "shop", moduleOf("team", "shop", "6c2ac8e8-bb07-4a5c-9c0c-2f9e7f3f9a10"))
	for _, tc := range []struct {
		files string
		want  []string
	}{
		{`resource "sim_a" "one" {}
output "out" { value = sim_a.one.name }`, []string{"module.shop.sim_a.one"}},
		{`resource "sim_a" "many" { count = 2 }
locals { many = sim_a.many[*].name }
output "out" { value = local.many }`, []string{"module.shop.sim_a.many[0]", "module.shop.sim_a.many[1]"}},
		{`output "out" { value = "fixed" }`, nil},
	} {
		x.files("team", tc.files)
		v, err := followed.View(t.Context(), "team")
		if err != nil {
			t.Fatal(err)
		}
		v.ExpandReferences()
		i, ok := v.Slot(lang.Address{Type: "sim_a", Name: "user"})
		if !ok {
			t.Fatal("the object is not in the view")
		}
		var got []string
		for _, d := range v.Nodes[i].Object.DependsOn {
			got = append(got, v.Nodes[d].Object.Address().String())
		}
		if slices.Sort(got); !slices.Equal(got, tc.want) {
			t.Errorf("with the files %s the object depends on %q, want %q", tc.files, got, tc.want)
		}
	}
}

// TestInstancesFollowRecordedValues expands a block whose count depends on a recorded value, when the record appears. When it goes, a
// recorded instance of the block stays, and no plan may change it.
func TestInstancesFollowRecordedValues(t *testing.T) {
	x := newIndexed(t)
	followed, l := x.newIndex(), ledger.New(x.s.KV())
	uid := types.UID("6c2ac8e8-bb07-4a5c-9c0c-2f9e7f3f9a10")
	const files = `resource "sim_a" "one" {}
resource "sim_a" "many" { count = sim_a.one.name == "1" ? 2 : 1 }`
	x.files("team", files)
	m := moduleOf("team", "shop", uid)
	x.write(modules, "team", "shop", m)
	sample := x.expanded(m, `resource "sim_a" "one" {}
resource "sim_a" "many" { count = 2 }`)
	ref := func(name string) v1alpha1.ObjectReference {
		base, key, _ := v1alpha1.ParseInstanceName(name)
		s := sample.BlockSet(v1alpha1.ObjectReference{Kind: "sim-a", Name: base})
		return v1alpha1.ObjectReference{APIVersion: "sim.hykube.io/v1", Kind: "sim-a", Namespace: "team", Name: name, UID: s.UIDOf(key), Set: "shop", SetUID: uid}
	}
	record := func(name, attributes string) {
		t.Helper()
		rec, err := l.Instance(t.Context(), ref(name))
		if err != nil {
			t.Fatal(err)
		}
		if rec.Object, rec.Attributes = ref(name), []byte(attributes); attributes == "" {
			err = l.Forget(t.Context(), rec)
		} else {
			err = l.Save(t.Context(), rec)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	expect := func(when string, waits bool, want ...string) {
		t.Helper()
		v, err := followed.View(t.Context(), "team")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, n := range v.Nodes {
			if n.Object != nil {
				text := n.Object.Address().String()
				if n.Object.Has(index.KeysUnknown) {
					text += " stays"
				}
				got = append(got, text)
			}
		}
		if slices.Sort(got); !slices.Equal(got, want) || len(v.ModuleProblems) > 0 {
			t.Errorf("%s: the view has %q, want %q; problems %q", when, got, want, v.ModuleProblems)
		}
		if waiting, err := followed.Waiting(t.Context(), "team"); err != nil || (waiting["module.shop.sim_a.many"] != "") != waits {
			t.Errorf("%s: %q waits, %v", when, waiting, err)
		}
	}
	expect("before the first apply", true, "module.shop.sim_a.one")
	record("module.shop:one", `{"name":"1"}`)
	expect("after it", false, "module.shop.sim_a.many[0]", "module.shop.sim_a.many[1]", "module.shop.sim_a.one")
	record("module.shop:many[0]", `{"name":"2"}`)
	record("module.shop:one", `{"name":"3"}`)
	expect("after a change of the value", false, "module.shop.sim_a.many[0]", "module.shop.sim_a.one")
	record("module.shop:one", "")
	expect("without the value", true, "module.shop.sim_a.many[0] stays", "module.shop.sim_a.one")
	record("module.shop:one", `{"name":"1"}`)
	expect("with it again", false, "module.shop.sim_a.many[0]", "module.shop.sim_a.many[1]", "module.shop.sim_a.one")
}

// TestRecordsThatKeepAModule records a resource and a data source of a Module. Only the resource keeps the Module, also after a restart.
func TestRecordsThatKeepAModule(t *testing.T) {
	x := newIndexed(t)
	followed, l := x.newIndex(), ledger.New(x.s.KV())
	uid := types.UID("6c2ac8e8-bb07-4a5c-9c0c-2f9e7f3f9a10")
	const files = "resource \"sim_a\" \"one\" {}\ndata \"sim_b\" \"read\" {}"
	x.files("team", files)
	m := moduleOf("team", "shop", uid)
	x.write(modules, "team", "shop", m)
	recorded := map[string]*ledger.Instance{}
	for _, s := range x.expanded(m, files).Sets {
		mode, _ := v1alpha1.ParseKind(s.Kind)
		rec := &ledger.Instance{Mode: mode, Provider: "sim", Object: v1alpha1.ObjectReference{
			APIVersion: s.APIVersion, Kind: s.Kind, Namespace: "team", Name: s.InstanceName(0), UID: s.UIDOf(s.Key(0)), Set: "shop", SetUID: uid,
		}}
		rec.Attributes = []byte(`{"name":"1"}`)
		if err := l.Save(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
		recorded[s.Kind] = rec
	}
	expect := func(when string, want int) {
		t.Helper()
		for which, in := range map[string]*index.Index{"followed": followed, "new": x.newIndex()} {
			if n, err := in.Records(t.Context(), "team", uid); n != want || err != nil {
				t.Errorf("%s: %d records keep the Module in the %s index, %v; want %d", when, n, which, err, want)
			}
		}
	}
	expect("with both", 1)
	if err := l.Forget(t.Context(), recorded["sim-a"]); err != nil {
		t.Fatal(err)
	}
	expect("with that of the data source", 0)
	if err := l.Forget(t.Context(), recorded["data-sim-b"]); err != nil {
		t.Fatal(err)
	}
	expect("with none", 0)
}

// entries describes the objects of a view by their addresses. The generation and the references of a leaving instance do not matter.
func entries(v *index.View) map[string]string {
	out := map[string]string{}
	for _, n := range v.Nodes {
		if n.Object == nil {
			continue
		}
		var needs []string
		for _, d := range n.Object.DependsOn {
			if v.Nodes[d].Object != nil {
				needs = append(needs, v.Nodes[d].Object.Address().String())
			}
		}
		slices.Sort(needs)
		text := fmt.Sprint(n.Object.UID, n.Object.Flags&index.Deleting, n.Record != nil, n.Object.Instance.Leaving)
		if !n.Object.Instance.Leaving {
			text += fmt.Sprint(n.Object.Generation, n.Object.Labels, n.Object.Moved, needs)
		}
		out[n.Object.Address().String()] = text
	}
	return out
}

// TestOverlaidModules wants the view of a speculative plan to be that after the objects are recorded: with other files, other inputs,
// both, an error, a deletion mark, and without the Module.
func TestOverlaidModules(t *testing.T) {
	x := newIndexed(t)
	followed, l := x.newIndex(), ledger.New(x.s.KV())
	uid := types.UID("6c2ac8e8-bb07-4a5c-9c0c-2f9e7f3f9a10")
	first := moduleOf("team", "shop", uid)
	x.files("team", moduleFiles[0])
	x.write(modules, "team", "shop", first)
	for _, s := range x.expanded(first, moduleFiles[0]).Sets {
		ref := v1alpha1.ObjectReference{APIVersion: "sim.hykube.io/v1", Kind: "sim-a", Namespace: "team", Name: s.Object(s.Key(0)).GetName(),
			UID: s.UIDOf(s.Key(0)), Set: "shop", SetUID: uid}
		rec, err := l.Instance(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		rec.Object, rec.Attributes = ref, []byte(`{"id":"1"}`)
		if err := l.Save(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
	}
	view := func() *index.View {
		t.Helper()
		v, err := followed.View(t.Context(), "team")
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	inputs := func(n int, change func(*v1alpha1.Module)) *v1alpha1.Module {
		m := moduleOf("team", "shop", uid)
		m.Generation = 2
		m.Spec.Inputs = map[string]v1alpha1.JSON{"n": {Raw: fmt.Append(nil, n)}}
		if change != nil {
			change(m)
		}
		return m
	}
	for _, tc := range []struct {
		reason string
		next   *v1alpha1.Module
		main   string
	}{
		{"other inputs", inputs(3, nil), moduleFiles[0]},
		{"fewer instances", inputs(0, nil), moduleFiles[0]},
		{"other files", first, moduleFiles[1]},
		{"other files and inputs", inputs(2, nil), moduleFiles[1]},
		{"other labels", inputs(1, func(m *v1alpha1.Module) { m.Labels = map[string]string{"a": "b"} }), moduleFiles[0]},
		{"an error in the files", first, moduleFiles[2]},
		{"a deletion mark", inputs(1, func(m *v1alpha1.Module) { m.DeletionTimestamp = new(metav1.Unix(100, 0)) }), moduleFiles[0]},
		{"no Module", nil, moduleFiles[0]},
	} {
		got := view()
		if tc.next == nil {
			got.RemoveModule("shop", uid, nil)
		} else {
			m, err := followed.ExpandModule(t.Context(), tc.next, map[string][]byte{"main.tf": []byte(tc.main)})
			if err != nil {
				t.Fatal(err)
			}
			got.OverlayModule(m)
		}
		x.files("team", tc.main)
		if tc.next == nil {
			x.write(modules, "team", "shop", nil)
		} else {
			x.write(modules, "team", "shop", tc.next)
		}
		want := view()
		if d := cmp.Diff(entries(want), entries(got)); d != "" || len(want.ModuleProblems) != len(got.ModuleProblems) {
			t.Errorf("%s: problems %v and %v, entries (-recorded +overlaid):\n%s", tc.reason, want.ModuleProblems, got.ModuleProblems, d)
		}
		output := lang.OutputOf("", "shop", "out")
		if d := cmp.Diff(want.Behind(output), got.Behind(output)); d != "" {
			t.Errorf("%s: what is behind the output (-recorded +overlaid):\n%s", tc.reason, d)
		}
		x.files("team", moduleFiles[0])
		x.write(modules, "team", "shop", first)
		if len(entries(view())) != 2 {
			t.Fatalf("%s: afterwards %v", tc.reason, entries(view()))
		}
	}
}
