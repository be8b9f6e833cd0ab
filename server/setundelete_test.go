package server_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/server"
)

// keptObject returns an object with a finalizer, so that its deletion only marks it.
func keptObject(obj *unstructured.Unstructured) *unstructured.Unstructured {
	obj.SetFinalizers([]string{"example.com/keep"})
	return obj
}

// newSet returns a ResourceSet of networks.
func newSet(name string) *unstructured.Unstructured {
	return newObject("ResourceSet", name, map[string]any{"count": int64(2), "template": map[string]any{
		"apiVersion": simNetworks.GroupVersion().String(), "kind": "sim-network", "spec": map[string]any{}}})
}

// newModule returns a Module whose files no ConfigMap has yet.
func newModule(name string) *unstructured.Unstructured {
	return newObject("Module", name, map[string]any{"source": map[string]any{"configMap": "files"}})
}

// newMarked creates an object in the namespace default, and deletes it.
func newMarked(t *testing.T, of dynamic.ResourceInterface, obj *unstructured.Unstructured) {
	t.Helper()
	if _, err := of.Create(t.Context(), keptObject(obj), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := of.Delete(t.Context(), obj.GetName(), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// isMarked reports whether an object is marked for deletion.
func isMarked(t *testing.T, of dynamic.ResourceInterface, name string) bool {
	t.Helper()
	obj, err := of.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return obj.GetDeletionTimestamp() != nil
}

// undelete takes the deletion of a ResourceSet or a Module back.
func undelete(t *testing.T, of dynamic.ResourceInterface, obj *unstructured.Unstructured) error {
	t.Helper()
	_, err := of.Create(t.Context(), obj, metav1.CreateOptions{}, "undelete")
	return err
}

// TestUndeleteOfASetThatAPlanDestroys takes the deletion of a ResourceSet or a Module back while an approved plan destroys its
// instances: the plan was approved before the request, or while the server cleared the mark. In both cases the object stays marked.
func TestUndeleteOfASetThatAPlanDestroys(t *testing.T) {
	// from is the number of the first question of an undelete that finds the plan; none finds it with never.
	const never = 3
	var asked, from atomic.Int32
	wire := func(ctx context.Context, h *server.Components) (server.Wiring, error) {
		w, err := testWiring(ctx, h)
		w.DestroysInstances = func(_ context.Context, owner metav1.Object) (*v1alpha1.Plan, error) {
			if asked.Add(1) < from.Load() {
				return nil, nil
			}
			p := &v1alpha1.Plan{ObjectMeta: metav1.ObjectMeta{Name: "destroys-" + owner.GetName()}}
			p.Status.Approval = &v1alpha1.PlanApproval{By: &v1alpha1.Identity{Username: "ann"}}
			return p, nil
		}
		return w, err
	}
	i := startT(t, server.Config{DataDir: t.TempDir(), Wire: wire})
	for resource, newOne := range map[schema.GroupVersionResource]func(string) *unstructured.Unstructured{sets: newSet, modules: newModule} {
		of := objects(t, i.admin()).Resource(resource).Namespace("default")
		for name, first := range map[string]int32{"before": 1, "meanwhile": 2, "not": never} {
			newMarked(t, of, newOne(name))
			asked.Store(0)
			from.Store(first)
			err := undelete(t, of, newOne(name))
			refused := first != never
			want := resource.Resource + `.hykube.io "` + name + `": plan "destroys-` + name +
				`" destroys or forgets its instances, and was approved by ann; its deletion cannot be taken back any more`
			if apierrors.IsConflict(err) != refused || refused && !strings.Contains(err.Error(), want) || !refused && err != nil {
				t.Errorf("%s %s: %v, want refused %t with %q", resource.Resource, name, err, refused, want)
			}
			if marked := isMarked(t, of, name); marked != refused {
				t.Errorf("%s %s is marked for deletion: %t, want %t", resource.Resource, name, marked, refused)
			}
		}
	}
}

// TestUndeleteOfASetNeedsTheRightToItsTemplate takes the deletion of a ResourceSet back as a user who may do that with sets, but
// not with objects of the kind of the template.
func TestUndeleteOfASetNeedsTheRightToItsTemplate(t *testing.T) {
	i := startT(t, server.Config{DataDir: t.TempDir(), TokenAuthFile: sharedTokens, Wire: testWiring})
	of := objects(t, i.admin()).Resource(sets).Namespace("default")
	newMarked(t, of, newSet("web"))
	rule := func(group, resource string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{"create"}}
	}
	allowOn(t, i, "default", "undelete-sets", "readers", rule(v1alpha1.GroupName, "resourcesets/undelete"))
	as := objects(t, i.as("viewer")).Resource(sets).Namespace("default")
	var err error
	eventually(t, "the user may undelete sets", func() bool {
		err = undelete(t, as, newSet("web"))
		return err == nil || strings.Contains(err.Error(), "sim-networks")
	})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `has no right to create sim-networks.sim.hykube.io/undelete in the namespace "default"`) {
		t.Errorf("without the right to the template: %v", err)
	}
	if !isMarked(t, of, "web") {
		t.Error("the deletion was taken back without the right to the template")
	}
	allowOn(t, i, "default", "undelete-networks", "readers", rule(simNetworks.Group, "sim-networks/undelete"))
	eventually(t, "the user may undelete networks", func() bool {
		err = undelete(t, as, newSet("web"))
		return !apierrors.IsForbidden(err)
	})
	if err != nil || isMarked(t, of, "web") {
		t.Errorf("with both rights: %v", err)
	}
}

// TestAWriteOfADeletedObjectWarns writes objects that are marked for deletion. The answer warns that the write keeps the mark.
func TestAWriteOfADeletedObjectWarns(t *testing.T) {
	i := startT(t, server.Config{DataDir: t.TempDir(), Wire: testWiring})
	var heard heardWarnings
	admin := rest.CopyConfig(i.admin())
	admin.WarningHandler = &heard
	client := objects(t, admin)
	for kind, test := range map[string]struct {
		of  dynamic.ResourceInterface
		obj *unstructured.Unstructured
	}{
		"sim-network": {client.Resource(simNetworks).Namespace("default"), simNetwork("main")},
		"resourceset": {client.Resource(sets).Namespace("default"), newSet("main")},
		"module":      {client.Resource(modules).Namespace("default"), newModule("main")},
	} {
		write := func() []string {
			t.Helper()
			heard = nil
			patch := []byte(`{"metadata":{"labels":{"team":"web"}}}`)
			if _, err := test.of.Patch(t.Context(), "main", types.MergePatchType, patch, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
				t.Fatal(err)
			}
			return heard
		}
		if _, err := test.of.Create(t.Context(), keptObject(test.obj), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if got := write(); len(got) > 0 {
			t.Errorf("%s: the write of an object that is not deleted warns: %q", kind, got)
		}
		if err := test.of.Delete(t.Context(), "main", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		want := []string{kind + "/main stays marked for deletion: kubectl hykube undelete " + kind + "/main -n default takes the deletion back"}
		if diff := cmp.Diff(want, write()); diff != "" {
			t.Errorf("%s: the warnings of a write of the deleted object differ (-want +got):\n%s", kind, diff)
		}
	}
}
