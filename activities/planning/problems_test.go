package planning

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/hykube/hykube/activities/activitiestest"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/index"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/resourceset"
	"github.com/hykube/hykube/workflows"

	"go.temporal.io/sdk/temporal"
	"k8s.io/apimachinery/pkg/types"
)

// TestAddressesOfSets gives an object and two ResourceSets one address. An object that is marked for deletion makes way.
func TestAddressesOfSets(t *testing.T) {
	w := activitiestest.NewWorld(t)
	w.Put("test-thing/web", nil, nil)
	view, err := w.Index.View(t.Context(), "team")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"first", "second"} {
		obj := &v1alpha1.ResourceSet{Spec: v1alpha1.ResourceSetSpec{Count: new(int32(1)), Template: v1alpha1.ResourceTemplate{
			APIVersion: "test.hykube.io/v1", Kind: "test-thing"}}}
		obj.Namespace, obj.Name, obj.UID, obj.Spec.Template.Metadata.Name = "team", name, types.UID(name), "web"
		set, err := resourceset.New(obj, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		view.OverlaySet(set)
	}
	var got []string
	for _, d := range duplicates(view) {
		got = append(got, d.Address+": "+d.Detail)
	}
	want := []string{
		"test_thing.web: test_thing.web is an object, and the template of a ResourceSet, too. Rename one of them.",
		`test_thing.web: The templates of the ResourceSets "first" and "second" have the same address. Rename one of them.`,
	}
	if !slices.Equal(got, want) || !view.Ambiguous() {
		t.Errorf("got %q, want %q", got, want)
	}
	slot, _ := view.Slot(lang.Address{Type: "test_thing", Name: "web"})
	object := *view.Nodes[slot].Object
	object.Flags |= index.Deleting
	if view.Nodes[slot].Object = &object; len(view.Hiding()) > 0 {
		t.Errorf("an object that is marked for deletion hides %v", view.Hiding())
	}
}

// unreadable is a feed of the index that cannot be read.
type unreadable struct{ index.Objects }

func (unreadable) Since(context.Context, int64, int) ([]index.Change, int64, bool, error) {
	return nil, 0, false, errors.New("the database does not answer")
}

// TestAFailedRefreshIsTriedAgain wants a survey to fail with an error that the workflow retries, and not with one of the plan.
func TestAFailedRefreshIsTriedAgain(t *testing.T) {
	w := activitiestest.NewWorld(t)
	w.Sources.Index = index.New(unreadable{}, w.Ledger, w.Catalog)
	_, err := plannerOf(w).survey(t.Context(), w.Plan())
	if app, ok := errors.AsType[*temporal.ApplicationError](err); err == nil || ok && app.Type() == workflows.ErrorFinal {
		t.Errorf("got %v", err)
	}
}
