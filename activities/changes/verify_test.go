package changes

import (
	"slices"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/server/storage"
)

// plurals is the objects of kinds whose plural is their name with an s.
type plurals struct{ store.Objects }

func (plurals) Plural(ref v1alpha1.ObjectReference) (string, error) { return ref.Kind + "s", nil }

// TestRightsToAReplacedInstance expects the right to the old ProviderConfig unless the replace forgets the old instance.
func TestRightsToAReplacedInstance(t *testing.T) {
	s, err := storage.Open(t.Context(), storage.Config{DataDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	l, po := ledger.New(s.KV()), &v1alpha1.Plan{}
	po.UID = "plan"
	object := v1alpha1.ObjectReference{APIVersion: "sim.hykube.io/v1", Kind: "sim-network", Namespace: "team", Name: "a", UID: "a"}
	rec := &ledger.Instance{Object: object}
	rec.Type, rec.ProviderConfig, rec.Attributes = "sim_network", "old", []byte(`{}`)
	if err := l.Save(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	for i, test := range []struct {
		name  string
		set   func(*ledger.Change)
		needs bool
	}{
		{"a replace", func(*ledger.Change) {}, true},
		{"a replace that leaves the old instance", func(c *ledger.Change) { c.CreateBeforeDestroy, c.LeaveDeposed = true, true }, true},
		{"a replace that forgets the old instance", func(c *ledger.Change) { c.Forget = true }, false},
		{"an update", func(c *ledger.Change) { c.Action = v1alpha1.ActionUpdate }, false},
	} {
		c := &ledger.Change{}
		c.Index, c.Object, c.Action, c.ProviderConfig = int32(i), object, v1alpha1.ActionReplace, "new"
		test.set(c)
		if err := l.SaveChange(t.Context(), po.UID, c); err != nil {
			t.Fatal(err)
		}
		stored := StoredChangeOf(c)
		rights, err := rightsTo(t.Context(), &scope.Sources{Ledger: l, Objects: plurals{}}, po, &stored)
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.Contains(rights, store.UseOf("team", "old")); got != test.needs || !slices.Contains(rights, store.UseOf("team", "new")) {
			t.Errorf("%s needs the old ProviderConfig: %t, want %t; all rights: %+v", test.name, got, test.needs, rights)
		}
	}
}
