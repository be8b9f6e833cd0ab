package storage

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/storage/value"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/index"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/metrics"
	"github.com/hykube/hykube/internal/provider"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/schema"
)

// indexed is a store with objects of two types, and the indexes of it.
type indexed struct {
	t       *testing.T
	dir     string
	s       *Store
	catalog *catalog.Catalog
	random  *rand.Rand
	born    int
	// owned counts the owners that checkOwners has compared.
	owned int
	// drifted and failed count the resources that checkCounts has compared.
	drifted, failed int
	statuses        int
}

// putProvider puts a provider "sim" whose types have the attributes.
func putProvider(c *catalog.Catalog, attributes ...string) {
	block := &schema.Block{}
	for _, name := range attributes {
		block.Attributes = append(block.Attributes, &schema.Attribute{Name: name, Type: cty.String, Optional: true})
	}
	of := &schema.Schema{Block: block}
	installed := provider.Package{Version: "1.0.0", Checksum: "h1:" + strings.Join(attributes, ",")}
	c.Put(catalog.Entry{Name: "sim", Package: installed, Schema: &schema.Provider{Resources: map[string]*schema.Schema{"sim_a": of}, DataSources: map[string]*schema.Schema{"sim_b": of}}})
}

func (x *indexed) open() {
	x.s = openAt(x.t, Config{DataDir: x.dir, AcceptRestored: true, CreateDatabase: true})
}

func (x *indexed) newIndex() *index.Index {
	return index.New(x.s.Objects(), ledger.New(x.s.KV()), x.catalog)
}

// step makes a random write.
func (x *indexed) step() {
	t := x.t
	switch x.random.IntN(6) {
	case 0, 1:
		x.setStep()
		return
	case 2:
		x.moduleStep()
		return
	}
	namespace := []string{"team", "other"}[x.random.IntN(2)]
	kind := []string{"sim-a", "data-sim-b"}[x.random.IntN(2)]
	stored := map[string]string{"sim-a": "sim_a", "data-sim-b": "data.sim_b"}[kind]
	name := fmt.Sprintf("n%d", x.random.IntN(8))
	gr := kschema.GroupResource{Group: "sim.hykube.io", Resource: stored}
	old, err := x.s.Objects().Get(t.Context(), gr, namespace, name)
	if err != nil {
		t.Fatal(err)
	}
	switch dice := x.random.IntN(10); {
	case dice < 2 && old != nil:
		x.write(gr, namespace, name, nil)
	case dice < 4:
		l := ledger.New(x.s.KV())
		ref := v1alpha1.ObjectReference{Namespace: namespace, Name: name, Kind: kind, UID: types.UID(fmt.Sprintf("uid-%d", 1+x.random.IntN(x.born+1)))}
		if old != nil && x.random.IntN(3) > 0 {
			ref.UID = old.GetUID()
		}
		rec, err := l.Instance(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		if x.random.IntN(3) == 0 {
			err = l.Forget(t.Context(), rec)
		} else {
			rec.Attributes, rec.Plan, rec.Object.Generation = fmt.Appendf(nil, `{"id":"%d"}`, x.random.IntN(9)), types.UID(fmt.Sprint("plan-", x.random.IntN(9))), 1
			rec.Dependencies, rec.DependencyVersions = []string{"sim_a.n1", "sim_a.gone"}, map[string]string{"sim_a.n1": fmt.Sprint(x.random.IntN(3)), "Provider/sim": "1"}
			rec.Deposed = nil
			if x.random.IntN(3) == 0 {
				rec.Deposed = []ledger.Deposed{{Key: "old", State: ledger.State{Attributes: fmt.Appendf(nil, `{"id":"%d"}`, x.random.IntN(9))}}}
			}
			if rec.Intent = nil; x.random.IntN(3) == 0 {
				rec.Intent = &ledger.Intent{Action: []v1alpha1.Action{v1alpha1.ActionCreate, v1alpha1.ActionUpdate}[x.random.IntN(2)]}
			}
			err = l.Save(t.Context(), rec)
		}
		if err != nil {
			t.Fatal(err)
		}
	default:
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "sim.hykube.io/v1", "kind": kind}}
		u.SetNamespace(namespace)
		u.SetName(name)
		if old != nil {
			u = old
		} else {
			x.born++
			u.SetUID(types.UID(fmt.Sprintf("uid-%d", x.born)))
		}
		if x.random.IntN(2) == 0 {
			u.SetGeneration(u.GetGeneration() + 1)
			u.Object["spec"] = map[string]any{"name": fmt.Sprintf("${sim_a.n%d.name}${configmap.x.y}", x.random.IntN(9))}
		} else {
			u.SetLabels(map[string]string{"l": fmt.Sprint(x.random.IntN(3))})
			x.statuses++
			condition := []string{"Drifted", "Stalled", "Ready"}[x.statuses%3]
			u.Object["status"] = map[string]any{"appliedGeneration": u.GetGeneration(), "conditions": []any{
				map[string]any{"type": condition, "status": "True", "observedGeneration": u.GetGeneration()}}}
		}
		x.write(gr, namespace, name, u)
	}
}

// check expects the index to have the same facts as a new one.
func (x *indexed) check(followed *index.Index, when string) {
	x.t.Helper()
	fresh := x.newIndex()
	for _, i := range []*index.Index{fresh, followed} {
		if err := i.Refresh(x.t.Context()); err != nil {
			x.t.Fatal(err)
		}
	}
	if diff := cmp.Diff(fresh.Facts(), followed.Facts()); diff != "" {
		x.t.Fatalf("%s: the index differs from a new one (-new +got):\n%s", when, diff)
	}
	for _, namespace := range []string{"team", "other", "empty"} {
		want, err := fresh.View(x.t.Context(), namespace)
		if err != nil {
			x.t.Fatal(err)
		}
		got, err := followed.View(x.t.Context(), namespace)
		if err != nil {
			x.t.Fatal(err)
		}
		if want.Ambiguous() != got.Ambiguous() {
			x.t.Fatalf("%s, namespace %q: ambiguous: %t, want %t", when, namespace, got.Ambiguous(), want.Ambiguous())
		}
		// Of an ambiguous namespace, the index has one of several objects with an address, and no plan uses it.
		if diff := cmp.Diff([]any{want.Lost, want.Problems, want.ModuleProblems}, []any{got.Lost, got.Problems, got.ModuleProblems}); diff != "" && !want.Ambiguous() {
			x.t.Fatalf("%s, namespace %q: the view differs from that of a new index (-new +got):\n%s", when, namespace, diff)
		}
	}
	x.checkCreating(followed, when)
	x.checkCounts(followed, when)
	for id := range 9 {
		x.checkOwners(followed, fmt.Sprint(id), when)
	}
}

// checkCreating expects the index to have exactly the records with an intent to create.
func (x *indexed) checkCreating(followed *index.Index, when string) {
	x.t.Helper()
	var want, got []string
	for rec, err := range ledger.New(x.s.KV()).Instances(x.t.Context(), "") {
		if err != nil {
			x.t.Fatal(err)
		}
		if rec.Intent != nil && rec.Intent.Action == v1alpha1.ActionCreate {
			want = append(want, fmt.Sprint(rec.Object.Namespace, "/", rec.Object.UID, " at ", rec.Revision()))
		}
	}
	for _, c := range followed.Creating() {
		got = append(got, fmt.Sprint(c.Object.Namespace, "/", c.Object.UID, " at ", c.Revision))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		x.t.Fatalf("%s: the records with an intent to create are %q, want %q", when, got, want)
	}
}

// checkCounts expects the index to count the resources that drifted or failed.
func (x *indexed) checkCounts(followed *index.Index, when string) {
	x.t.Helper()
	want := map[string]metrics.Resources{}
	for _, namespace := range []string{"team", "other"} {
		view, err := followed.View(x.t.Context(), namespace)
		if err != nil {
			x.t.Fatal(err)
		}
		var n metrics.Resources
		objects := 0
		for _, node := range view.Nodes {
			if node.Object == nil {
				continue
			}
			objects++
			switch {
			case node.Object.Mode != v1alpha1.ModeManaged:
			case node.Object.Has(index.Failed):
				n.Failed++
			case node.Object.Has(index.Drifted) || node.Object.Has(index.Stalled):
				n.Drifted++
			}
		}
		x.drifted, x.failed = x.drifted+n.Drifted, x.failed+n.Failed
		if objects > 0 {
			want[namespace] = n
		}
	}
	if diff := cmp.Diff(want, followed.Counts()); diff != "" {
		x.t.Fatalf("%s: the counts differ (-want +got):\n%s", when, diff)
	}
}

// checkOwners expects the index to have exactly the records with the ID.
func (x *indexed) checkOwners(followed *index.Index, id, when string) {
	x.t.Helper()
	var want []string
	for rec, err := range ledger.New(x.s.KV()).Instances(x.t.Context(), "") {
		if err != nil {
			x.t.Fatal(err)
		}
		if rec.ID() == id || len(rec.Deposed) > 0 && rec.Deposed[0].ID() == id {
			want = append(want, rec.Object.Namespace+"/"+string(rec.Object.UID))
		}
	}
	var got []string
	for _, ref := range followed.Owners("", id) {
		got = append(got, ref.Namespace+"/"+string(ref.UID))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		x.t.Fatalf("%s: the owners of ID %s are %q, want %q", when, id, got, want)
	}
	x.owned += len(want)
}

func TestIndexFollowsTheStore(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			x := &indexed{t: t, dir: t.TempDir(), catalog: catalog.New(nil), random: rand.New(rand.NewPCG(seed, 1))}
			putProvider(x.catalog, "name")
			x.open()
			followed := x.newIndex()
			for round := range 30 {
				for range x.random.IntN(12) {
					x.step()
				}
				when := fmt.Sprintf("round %d", round)
				switch x.random.IntN(6) {
				case 0:
					when += ", after a compaction"
					if _, err := x.s.table.db.Exec("UPDATE kine SET prev_revision = (SELECT MAX(id) FROM kine) WHERE name = 'compact_rev_key'"); err != nil {
						t.Fatal(err)
					}
					x.compact()
				case 1:
					when += ", after a new version of the provider"
					putProvider(x.catalog, []string{"name", "other"}[x.random.IntN(2)])
				case 2:
					when += ", after a restart"
					closeStore(t, x.s)
					x.open()
					followed = x.newIndex()
				case 3:
					when += ", after the removal of the provider"
					x.catalog.Remove("sim")
				case 4:
					putProvider(x.catalog, "name")
				}
				x.check(followed, when)
			}
			if x.drifted+x.failed == 0 {
				t.Errorf("the test compared no counts of drifted and failed resources")
			}
			if x.owned == 0 {
				t.Error("no ID ever had an owner")
			}
		})
	}
}

// TestCountsOfDriftedAndFailedResources edits the specs of stalled resources, so that their statuses belong to an older
// generation, and restarts.
func TestCountsOfDriftedAndFailedResources(t *testing.T) {
	x := &indexed{t: t, dir: t.TempDir(), catalog: catalog.New(nil)}
	putProvider(x.catalog, "name")
	x.open()
	followed := x.newIndex()
	gr := kschema.GroupResource{Group: "sim.hykube.io", Resource: "sim_a"}
	expect := func(when string, want metrics.Resources) {
		t.Helper()
		if _, err := followed.View(t.Context(), "team"); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]metrics.Resources{"team": want}, followed.Counts()); diff != "" {
			t.Errorf("%s: the counts differ (-want +got):\n%s", when, diff)
		}
	}
	statuses := map[string]func(*resource.Status){
		"good":    func(s *resource.Status) { s.Ready(1, "applied") },
		"drifted": func(s *resource.Status) { s.Drift(1, v1alpha1.ReasonDrifted, "changed") },
		"gone":    func(s *resource.Status) { s.Drift(1, v1alpha1.ReasonGone, "removed") },
		"failed":  func(s *resource.Status) { s.Stall(1, v1alpha1.ReasonApplyFailed, "no") },
		"uncorrected": func(s *resource.Status) {
			s.Drift(1, v1alpha1.ReasonDrifted, "changed")
			s.Stall(1, v1alpha1.ReasonApplyFailed, "the correction failed")
		},
	}
	for name, change := range statuses {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "sim.hykube.io/v1", "kind": "sim-a"}}
		u.SetNamespace("team")
		u.SetName(name)
		u.SetUID(types.UID("uid-" + name))
		u.SetGeneration(1)
		status := resource.StatusOf(u)
		change(status)
		u.Object["status"] = status.ToMap()
		x.write(gr, "team", name, u)
	}
	want := metrics.Resources{Drifted: 2, Failed: 2}
	expect("before the edits", want)
	for name := range statuses {
		u, err := x.s.Objects().Get(t.Context(), gr, "team", name)
		if err != nil {
			t.Fatal(err)
		}
		u.SetGeneration(2)
		u.Object["spec"] = map[string]any{"name": "other"}
		x.write(gr, "team", name, u)
	}
	expect("after the edits", want)
	closeStore(t, x.s)
	x.open()
	followed = x.newIndex()
	expect("after a restart", want)
}

// compact removes the rows that kine's compaction would remove.
func (x *indexed) compact() {
	const outdated = "DELETE FROM kine WHERE name <> 'compact_rev_key' AND id < (SELECT MAX(id) FROM kine) AND (deleted <> 0 OR id <> (SELECT MAX(other.id) FROM kine AS other WHERE other.name = kine.name))"
	if _, err := x.s.table.db.Exec(outdated); err != nil {
		x.t.Fatal(err)
	}
}

func TestIndexGivesUnusedSlotsBack(t *testing.T) {
	x := &indexed{t: t, dir: t.TempDir(), catalog: catalog.New(nil), random: rand.New(rand.NewPCG(1, 1))}
	putProvider(x.catalog, "name")
	x.open()
	followed := x.newIndex()
	write := func(name string, deleted bool) {
		gr := kschema.GroupResource{Group: "sim.hykube.io", Resource: "sim_a"}
		key := groupPrefix(gr.Group) + "sim_a/team/" + name
		data := fmt.Appendf(nil, `{"apiVersion":"sim.hykube.io/v1","kind":"sim-a","metadata":{"namespace":"team","name":%q,"uid":%q,"generation":1},"spec":{"name":"${sim_a.kept.name}"}}`, name, name)
		data, err := x.s.encryption.transformer(gr).TransformToStorage(t.Context(), data, value.DefaultContext(key))
		if err != nil {
			t.Fatal(err)
		}
		revision := put(t, x.s, key, string(data), 0)
		if !deleted {
			return
		}
		if _, err := x.s.client.KV.Txn(t.Context()).If(clientv3.Compare(clientv3.ModRevision(key), "=", revision)).Then(clientv3.OpDelete(key)).Else(clientv3.OpGet(key)).Commit(); err != nil {
			t.Fatal(err)
		}
	}
	write("kept", false)
	write("user", false)
	var sizes []int
	for i := range 6 {
		var before *index.View
		for k := range 250 {
			write(fmt.Sprintf("g%d-%d", i, k), true)
			if k == 200 {
				var err error
				if before, err = followed.View(t.Context(), "team"); err != nil {
					t.Fatal(err)
				}
			}
		}
		x.check(followed, fmt.Sprint("round ", i))
		if names := before.Names("", "sim_a"); !slices.Equal(names, []string{"kept", "user"}) {
			t.Errorf("an older view has the objects %v", names)
		}
		v, err := followed.View(t.Context(), "team")
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, len(v.Nodes))
	}
	if largest := slices.Max(sizes); largest > 1300 {
		t.Errorf("the index has %v slots for two objects", sizes)
	}
}
