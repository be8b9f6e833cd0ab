package states

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hykube/hykube/activities/activitiestest"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/provider"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/schema"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"
)

var alice = v1alpha1.Identity{Username: "alice"}

// upgrader is a provider that only upgrades states. Any other call panics.
type upgrader struct{ tfprotov6.ProviderServer }

func (upgrader) UpgradeResourceState(_ context.Context, r *tfprotov6.UpgradeResourceStateRequest) (*tfprotov6.UpgradeResourceStateResponse, error) {
	return &tfprotov6.UpgradeResourceStateResponse{UpgradedState: &tfprotov6.DynamicValue{JSON: r.RawState.JSON}}, nil
}

// newStates returns a world with a provider that has an argument, so that its resources are more than values.
func newStates(t *testing.T) (*activitiestest.World, *States) {
	w := activitiestest.NewWorld(t)
	of := activitiestest.Schema()
	of.Config = &schema.Schema{Block: &schema.Block{Attributes: []*schema.Attribute{{Name: "region", Type: cty.String, Optional: true}}}}
	w.Catalog.Put(catalog.Entry{Name: "test", Schema: of, Package: provider.Package{Source: provider.Source{Hostname: "registry.terraform.io", Namespace: "hykube", Type: "test"}, Version: "1.0.0"}})
	w.Config(nil)
	w.Sessions.Unconfigured = func(context.Context, catalog.Entry, provider.Configuration) (tfprotov6.ProviderServer, func(), error) {
		return upgrader{}, func() {}, nil
	}
	return w, New(w.Sources, func(namespace string) bool { return namespace == "frozen" })
}

// entry returns an entry for the object of a name.
func entry(name, id string) v1alpha1.StateEntry {
	return v1alpha1.StateEntry{
		Address: "test_thing." + name, Type: "test_thing", Name: name, Provider: "registry.opentofu.org/hykube/test",
		Current: &v1alpha1.StateInstance{
			Attributes: &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"id":%q,"password":"p","uses":null}`, id)}, Private: []byte{0, 1},
			SensitivePaths: []string{`[{"type":"get_attr","value":"uses"}]`, `[{"type":"get_attr","value":"password"}]`},
		},
	}
}

// push sends one page and a commit. It returns the problems of the page, and the error of the first request that failed.
func push(s *States, spec v1alpha1.StatePushSpec, entries ...v1alpha1.StateEntry) ([]v1alpha1.StateProblem, error) {
	spec.Entries = entries
	p := &v1alpha1.StatePush{Spec: spec}
	p.Namespace = "team"
	ctx := context.Background()
	if err := s.Push(ctx, alice, p); err != nil || len(p.Status.Problems) > 0 {
		return p.Status.Problems, err
	}
	p.Spec.Entries, p.Spec.Commit = nil, true
	if err := s.Push(ctx, alice, p); err != nil {
		return nil, err
	}
	if !p.Status.Committed || p.Status.Remaining != 0 {
		return nil, fmt.Errorf("status %+v", p.Status)
	}
	return nil, nil
}

func specOf(id string, serial int64) v1alpha1.StatePushSpec {
	return v1alpha1.StatePushSpec{ID: id, Lineage: "lineage", Serial: serial, TerraformVersion: "1.11.0"}
}

// TestForceKeepsTheResource pushes newer states of the same lineage. None may lose a resource that has a record.
func TestForceKeepsTheResource(t *testing.T) {
	w, s := newStates(t)
	a := w.Put("test-thing/a", nil, nil)
	deposed := *entry("a", "old").Current
	deposed.Key = "0a1b2c3d"
	first := entry("a", "1")
	first.Deposed = []v1alpha1.StateInstance{deposed}
	if problems, err := push(s, specOf("one", 3), first); err != nil || len(problems) > 0 {
		t.Fatal(problems, err)
	}
	if problems, err := push(s, specOf("two", 4), first); err != nil || len(problems) != 1 || !strings.Contains(problems[0].Remedy, "push with --force") {
		t.Errorf("a newer state without force: problems %+v, %v", problems, err)
	}
	force := specOf("three", 4)
	force.Force = true
	other := entry("a", "2")
	other.Deposed = first.Deposed
	gone := entry("a", "")
	gone.Current, gone.Deposed = nil, first.Deposed
	for why, e := range map[string]v1alpha1.StateEntry{"another ID": other, "no current instance": gone, "no deposed instance": entry("a", "1")} {
		if problems, err := push(s, force, e); err != nil || len(problems) != 1 || !strings.Contains(problems[0].Remedy, "would forget") {
			t.Errorf("%s: problems %+v, %v", why, problems, err)
		}
	}
	if id := w.Instance(a).ID(); id != "1" {
		t.Errorf("the record has the ID %q", id)
	}
	first.Current.Attributes.Raw = []byte(`{"id":"1","password":"q","uses":null}`)
	if problems, err := push(s, force, first); err != nil || len(problems) > 0 {
		t.Errorf("newer values: %+v, %v", problems, err)
	}
	if rec := w.Instance(a); rec.Configuration.Same(ledger.Configuration{}) || !strings.Contains(string(rec.Attributes), `"q"`) {
		t.Errorf("record %+v", rec)
	}
}

// TestPushAndPull expects that a pulled state has what was pushed, and that a push of it makes equal records.
func TestPushAndPull(t *testing.T) {
	w, s := newStates(t)
	a, b := w.Put("test-thing/a", nil, nil), w.Put("test-thing/b", nil, nil)
	first, second := entry("a", "1"), entry("b", "2")
	first.Address = `module.m["x"].test_thing.web`
	first.Current.Tainted, first.Current.CreateBeforeDestroy, first.Current.Dependencies = true, true, []string{"test_thing.b"}
	deposed := *entry("a", "old").Current
	deposed.Key = "0a1b2c3d"
	first.Deposed = []v1alpha1.StateInstance{deposed}
	if problems, err := push(s, specOf("one", 3), first, second); err != nil || len(problems) > 0 {
		t.Fatal(problems, err)
	}
	rec := w.Instance(a)
	if !rec.Tainted || !rec.CreateBeforeDestroy || !slices.Equal(rec.Dependencies, []string{"test_thing.b"}) || string(rec.Private) != "\x00\x01" ||
		rec.ProviderVersion != "1.0.0" || rec.Object.Generation != 0 || rec.FindDeposed("0a1b2c3d").ID() != "old" || !rec.Hides("uses") || rec.Hides("password") {
		t.Errorf("record %+v", rec)
	}
	for _, list := range [][]v1alpha1.Contributor{rec.Contributors, rec.Writers} {
		if len(list) != 1 || list[0].Username != "alice" || !slices.Equal(list[0].Wrote, []string{v1alpha1.WroteState}) {
			t.Errorf("contributors %+v", list)
		}
	}
	status := resource.StatusOf(w.Stored[activitiestest.FakeObjects{World: w}.Key(b.Ref)])
	if status.Attributes["id"] != "2" || status.Attributes["password"] == "p" || status.Conditions[0].Reason == "" {
		t.Errorf("status %+v", status)
	}

	pulled := pull(t, s)
	if pulled.Lineage != "lineage" || pulled.Serial != 4 || pulled.TerraformVersion != "1.11.0" || len(pulled.Entries) != 2 {
		t.Fatalf("pulled %+v", pulled)
	}
	w2, s2 := newStates(t)
	w2.Put("test-thing/a", nil, nil)
	w2.Put("test-thing/b", nil, nil)
	if problems, err := push(s2, specOf("two", pulled.Serial), pulled.Entries...); err != nil || len(problems) > 0 {
		t.Fatal(problems, err)
	}
	again := pull(t, s2)
	if d := cmp.Diff(asJSON(t, pulled.Entries), asJSON(t, again.Entries)); d != "" {
		t.Error(d)
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func pull(t *testing.T, s *States) *v1alpha1.StatePullStatus {
	t.Helper()
	p := &v1alpha1.StatePull{}
	p.Namespace = "team"
	if err := s.Pull(t.Context(), alice, p); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(p.Status.Entries, func(a, b v1alpha1.StateEntry) int { return strings.Compare(a.Name, b.Name) })
	return &p.Status
}

// TestProblems expects that an entry with a problem keeps all others out.
func TestProblems(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*activitiestest.World, *v1alpha1.StateEntry)
		want   string
	}{
		"no object":      {func(_ *activitiestest.World, e *v1alpha1.StateEntry) { e.Name = "gone" }, "there is no object test-thing/gone"},
		"no name":        {func(_ *activitiestest.World, e *v1alpha1.StateEntry) { e.Name = "../x" }, "is no name of an object"},
		"no provider":    {func(_ *activitiestest.World, e *v1alpha1.StateEntry) { e.Provider = "registry.terraform.io/other/test" }, "no Provider with the source registry.terraform.io/other/test"},
		"no such type":   {func(_ *activitiestest.World, e *v1alpha1.StateEntry) { e.Type = "test_gone" }, "has no type test_gone"},
		"another config": {func(_ *activitiestest.World, e *v1alpha1.StateEntry) { e.ProviderConfig = "west" }, `with the ProviderConfig "west", and its object uses "default"`},
		"a record": {func(w *activitiestest.World, _ *v1alpha1.StateEntry) {
			w.Record(w.Put("test-thing/b", nil, nil), `{"id":"2"}`)
		}, "has a record, which is not of the lineage"},
		"a running plan": {func(w *activitiestest.World, _ *v1alpha1.StateEntry) {
			w.RecordBegun(w.Put("test-thing/b", nil, nil), false)
		}, "a plan is changing its object"},
		"another object's ID": {func(w *activitiestest.World, _ *v1alpha1.StateEntry) {
			w.Record(w.Put("test-thing/c", nil, nil), `{"id":"2"}`)
		}, "another object manages the same resource"},
		"another object's ID, and an identity without values": {func(w *activitiestest.World, e *v1alpha1.StateEntry) {
			rec := &ledger.Instance{Object: w.Put("test-thing/c", nil, nil).Ref, Provider: "test"}
			rec.State = ledger.State{Type: "test_thing", ProviderConfig: "default", Attributes: []byte(`{"id":"2"}`), Identity: []byte(`{"id":"2"}`)}
			if err := w.Ledger.Save(w.T.Context(), rec); err != nil {
				w.T.Fatal(err)
			}
			e.Current.Identity = &runtime.RawExtension{Raw: []byte(`{"id":null}`)}
		}, "another object manages the same resource"},
		"a newer schema":   {func(_ *activitiestest.World, e *v1alpha1.StateEntry) { e.Current.SchemaVersion = 7 }, "a newer provider"},
		"other attributes": {func(_ *activitiestest.World, e *v1alpha1.StateEntry) { e.Current.Attributes.Raw = []byte(`{"id":[1]}`) }, "does not fit its schema"},
		"no attributes":    {func(_ *activitiestest.World, e *v1alpha1.StateEntry) { e.Current.Attributes = nil }, "it has no attributes"},
		"nothing":          {func(_ *activitiestest.World, e *v1alpha1.StateEntry) { e.Current = nil }, "neither attributes nor a deposed instance"},
		"a deposed key": {func(_ *activitiestest.World, e *v1alpha1.StateEntry) {
			e.Deposed = []v1alpha1.StateInstance{{Key: "../../x"}}
		}, "is not one of 8 hexadecimal digits"},
		"a dependency": {func(_ *activitiestest.World, e *v1alpha1.StateEntry) {
			e.Current.Dependencies = []string{"module.a..b"}
		}, "is no address"},
	} {
		t.Run(name, func(t *testing.T) {
			w, s := newStates(t)
			a := w.Put("test-thing/a", nil, nil)
			w.Put("test-thing/b", nil, nil)
			good, bad := entry("a", "1"), entry("b", "2")
			tc.change(w, &bad)
			problems, err := push(s, specOf("one", 1), good, bad)
			if err != nil || len(problems) != 1 || problems[0].Address != "test_thing.b" || !strings.Contains(problems[0].Problem, tc.want) {
				t.Fatalf("problems %+v, error %v; want %q", problems, err, tc.want)
			}
			if w.Instance(a).Revision() != 0 {
				t.Error("the other resource was recorded")
			}
		})
	}
}

// TestRights expects that a user without one of the rights records and reads nothing.
func TestRights(t *testing.T) {
	for _, right := range []string{"create:team/test-things/*", "update:team/test-things/*", "team/test-things/state/*", "team/providerconfigs/*"} {
		t.Run(right, func(t *testing.T) {
			w, s := newStates(t)
			a := w.Put("test-thing/a", nil, nil)
			w.Forbidden[right] = true
			if _, err := push(s, specOf("one", 1), entry("a", "1")); !apierrors.IsForbidden(err) {
				t.Errorf("push: %v", err)
			}
			if w.Instance(a).Revision() != 0 {
				t.Error("the record was written")
			}
		})
	}
	w, s := newStates(t)
	w.Put("test-thing/a", nil, nil)
	if problems, err := push(s, specOf("one", 1), entry("a", "1")); err != nil || len(problems) > 0 {
		t.Fatal(problems, err)
	}
	w.Forbidden["team/test-things/state/*"] = true
	p := &v1alpha1.StatePull{}
	p.Namespace = "team"
	if err := s.Pull(t.Context(), alice, p); !apierrors.IsForbidden(err) || len(p.Status.Entries) > 0 {
		t.Errorf("pull: %v, %d entries", err, len(p.Status.Entries))
	}
}

// TestRightsOfTheCommit takes a right away between the page and the commit.
func TestRightsOfTheCommit(t *testing.T) {
	w, s := newStates(t)
	a := w.Put("test-thing/a", nil, nil)
	p := &v1alpha1.StatePush{Spec: specOf("one", 1)}
	p.Namespace, p.Spec.Entries = "team", []v1alpha1.StateEntry{entry("a", "1")}
	if err := s.Push(t.Context(), alice, p); err != nil || len(p.Status.Problems) > 0 {
		t.Fatal(p.Status.Problems, err)
	}
	p.Spec.Entries, p.Spec.Commit = nil, true
	if err := s.Push(t.Context(), v1alpha1.Identity{Username: "bob"}, p); !apierrors.IsConflict(err) {
		t.Errorf("another user commits: %v", err)
	}
	w.Forbidden["update:team/test-things/*"] = true
	if err := s.Push(t.Context(), alice, p); !apierrors.IsForbidden(err) {
		t.Errorf("commit: %v", err)
	}
	if w.Instance(a).Revision() != 0 {
		t.Error("the record was written")
	}
}

// TestARecordThatAPlanWroteMeanwhile expects that the commit records nothing.
func TestARecordThatAPlanWroteMeanwhile(t *testing.T) {
	w, s := newStates(t)
	a, b := w.Put("test-thing/a", nil, nil), w.Put("test-thing/b", nil, nil)
	p := &v1alpha1.StatePush{Spec: specOf("one", 1)}
	p.Namespace, p.Spec.Entries = "team", []v1alpha1.StateEntry{entry("a", "1"), entry("b", "2")}
	if err := s.Push(t.Context(), alice, p); err != nil || len(p.Status.Problems) > 0 {
		t.Fatal(p.Status.Problems, err)
	}
	w.Record(b, `{"id":"by a plan"}`)
	p.Spec.Entries, p.Spec.Commit = nil, true
	if err := s.Push(t.Context(), alice, p); !apierrors.IsConflict(err) {
		t.Errorf("commit: %v", err)
	}
	if w.Instance(a).Revision() != 0 || w.Instance(b).ID() != "by a plan" {
		t.Error("a record was written")
	}
}

// TestAResourceThatAnotherObjectTookMeanwhile gives an object the resource of a page, as the current or the deposed instance, before the commit.
func TestAResourceThatAnotherObjectTookMeanwhile(t *testing.T) {
	for _, id := range []string{"1", "old"} {
		w, s := newStates(t)
		a, other := w.Put("test-thing/a", nil, nil), w.Put("test-thing/other", nil, nil)
		e := entry("a", "1")
		deposed := *entry("a", "old").Current
		deposed.Key = "0a1b2c3d"
		e.Deposed = []v1alpha1.StateInstance{deposed}
		p := &v1alpha1.StatePush{Spec: specOf("one", 1)}
		p.Namespace, p.Spec.Entries = "team", []v1alpha1.StateEntry{e}
		if err := s.Push(t.Context(), alice, p); err != nil || len(p.Status.Problems) > 0 {
			t.Fatal(p.Status.Problems, err)
		}
		w.Record(other, fmt.Sprintf(`{"id":%q}`, id))
		p.Spec.Entries, p.Spec.Commit = nil, true
		if err := s.Push(t.Context(), alice, p); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "another object manages the same resource") {
			t.Errorf("commit beside the resource %s: %v", id, err)
		}
		if w.Instance(a).Revision() != 0 {
			t.Error("the record was written")
		}
	}
}

// TestAPushedIdentityProvesNothing pushes a state with an identity that no provider has confirmed, also for a deposed instance. The record
// has none, so that it cannot prove that the resource is not another object's with the same ID.
func TestAPushedIdentityProvesNothing(t *testing.T) {
	for _, identity := range []string{`{"id":"forged"}`, `{"id":null}`} {
		w, s := newStates(t)
		a := w.Put("test-thing/a", nil, nil)
		e := entry("a", "1")
		e.Current.Identity = &runtime.RawExtension{Raw: []byte(identity)}
		deposed := *entry("a", "old").Current
		deposed.Key, deposed.Identity = "0a1b2c3d", e.Current.Identity
		e.Deposed = []v1alpha1.StateInstance{deposed}
		if problems, err := push(s, specOf("one", 1), e); err != nil || len(problems) > 0 {
			t.Fatal(problems, err)
		}
		rec := w.Instance(a)
		if got, old := rec.State.IdentityText(), rec.FindDeposed("0a1b2c3d").IdentityText(); got != "" || old != "" {
			t.Errorf("pushed %s: the record has the identities %q and %q", identity, got, old)
		}
	}
}

// TestAFrozenNamespaceTakesNoState pushes into a namespace that was restored and not thawed.
func TestAFrozenNamespaceTakesNoState(t *testing.T) {
	_, s := newStates(t)
	p := &v1alpha1.StatePush{Spec: specOf("one", 1)}
	p.Namespace = "frozen"
	if err := s.Push(t.Context(), alice, p); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "kubectl hykube thaw") {
		t.Errorf("push: %v", err)
	}
}

// TestSerials pushes states of one lineage and of another one.
func TestSerials(t *testing.T) {
	w, s := newStates(t)
	a := w.Put("test-thing/a", nil, nil)
	if problems, err := push(s, specOf("p1", 5), entry("a", "1")); err != nil || len(problems) > 0 {
		t.Fatal(problems, err)
	}
	for _, serial := range []int64{4, 5} {
		if _, err := push(s, specOf("p2", serial), entry("a", "1")); !apierrors.IsConflict(err) {
			t.Errorf("serial %d: %v", serial, err)
		}
	}
	if problems, err := push(s, specOf("p3", 6), entry("a", "2")); err != nil || len(problems) != 1 || !strings.Contains(problems[0].Remedy, "--force") {
		t.Errorf("problems %v, %v", problems, err)
	}
	other := specOf("p4", 9)
	other.Lineage, other.Force = "other", true
	if problems, err := push(s, other, entry("a", "2")); err != nil || len(problems) != 1 || !strings.Contains(problems[0].Problem, `not of the lineage "other"`) {
		t.Errorf("problems %v, %v", problems, err)
	}
	if w.Instance(a).ID() != "1" {
		t.Errorf("ID %s", w.Instance(a).ID())
	}
	forced := specOf("p5", 5)
	forced.Force = true
	changed := entry("a", "1")
	changed.Current.Attributes.Raw = []byte(`{"id":"1","password":"q","uses":null}`)
	if problems, err := push(s, forced, changed); err != nil || len(problems) > 0 {
		t.Fatal(problems, err)
	}
	if !strings.Contains(string(w.Instance(a).Attributes), `"q"`) {
		t.Errorf("attributes %s", w.Instance(a).Attributes)
	}
}

// TestACommitContinues commits a push whose records are written and whose statuses are not.
func TestACommitContinues(t *testing.T) {
	w, s := newStates(t)
	var entries []v1alpha1.StateEntry
	var last *resource.Resource
	for i := range 40 {
		name := fmt.Sprintf("n%d", i)
		last = w.Put("test-thing/"+name, nil, nil)
		entries = append(entries, entry(name, name))
	}
	p := &v1alpha1.StatePush{Spec: specOf("one", 1)}
	p.Namespace, p.Spec.Entries = "team", entries
	if err := s.Push(t.Context(), alice, p); err != nil || len(p.Status.Problems) > 0 {
		t.Fatal(p.Status.Problems, err)
	}
	stored, err := s.Ledger.Push(t.Context(), "team")
	if err != nil {
		t.Fatal(err)
	}
	staged, err := s.staged(t.Context(), stored)
	if err != nil || len(staged) != 40 {
		t.Fatal(len(staged), err)
	}
	if err := s.write(t.Context(), p, stored, staged); err != nil {
		t.Fatal(err)
	}
	p.Spec.Entries, p.Spec.Commit = nil, true
	if err := s.Push(t.Context(), alice, p); err != nil || !p.Status.Committed || p.Status.Remaining != 0 {
		t.Fatal(p.Status, err)
	}
	if id := resource.StatusOf(w.Stored[activitiestest.FakeObjects{World: w}.Key(last.Ref)]).Attributes["id"]; id != "n39" {
		t.Errorf("status has the ID %v", id)
	}
	if stored, err := s.Ledger.Push(t.Context(), "team"); err != nil || stored.ID != "" {
		t.Errorf("the push is still there: %+v, %v", stored, err)
	}
}

// TestAPullWaitsForPlans pulls while a create runs, whose resource would be missing.
func TestAPullWaitsForPlans(t *testing.T) {
	w, s := newStates(t)
	w.RecordBegun(w.Put("test-thing/a", nil, nil), false)
	p := &v1alpha1.StatePull{}
	p.Namespace = "team"
	if err := s.Pull(t.Context(), alice, p); !apierrors.IsConflict(err) {
		t.Error(err)
	}
}
