package server_test

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/hykube/hykube/tests/harness"
)

// TestWritesOfWhatIsNotThereTakeTheRightToCreate lets a user who may update and patch, but not create, write objects that do not exist: by
// PUT, by server-side apply and by a merge patch. The kinds are one of a provider, one of Hykube and one of Kubernetes.
func TestWritesOfWhatIsNotThereTakeTheRightToCreate(t *testing.T) {
	ns := namespace(t, "create-rights")
	for _, group := range []string{"sim.hykube.io", "hykube.io", ""} {
		grant(t, shared, ns, "update"+group, ruleFor(group, "*", "get", "update", "patch"))
	}
	written := map[kschema.GroupVersionResource]map[string]any{
		{Group: "sim.hykube.io", Version: "v1", Resource: "sim-networks"}:      {"kind": "sim-network", "spec": map[string]any{"name": "n"}},
		{Group: "hykube.io", Version: "v1alpha1", Resource: "providerconfigs"}: {"kind": "ProviderConfig", "spec": map[string]any{"provider": "sim"}},
		{Group: "hykube.io", Version: "v1alpha1", Resource: "stacks"}:          {"kind": "Stack", "spec": map[string]any{"suspend": true}},
		{Version: "v1", Resource: "configmaps"}:                                {"kind": "ConfigMap", "data": map[string]any{"a": "b"}},
	}
	for gvr, object := range written {
		object["apiVersion"], object["metadata"] = gvr.GroupVersion().String(), map[string]any{"name": "absent", "namespace": ns}
		u := &unstructured.Unstructured{Object: object}
		client := objects(t, shared.as("viewer")).Resource(gvr).Namespace(ns)
		if err := harness.Within(deadline, func() error { // until the role has effect
			if _, err := client.Get(t.Context(), "absent", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				return err
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		raw, err := u.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		for how, write := range map[string]func(dynamic.ResourceInterface) error{
			"PUT": func(c dynamic.ResourceInterface) error {
				_, err := c.Update(t.Context(), u, metav1.UpdateOptions{})
				return err
			},
			"apply": func(c dynamic.ResourceInterface) error {
				_, err := c.Patch(t.Context(), "absent", types.ApplyPatchType, raw, metav1.PatchOptions{FieldManager: "test"})
				return err
			},
			"patch": func(c dynamic.ResourceInterface) error {
				_, err := c.Patch(t.Context(), "absent", types.MergePatchType, raw, metav1.PatchOptions{})
				return err
			},
		} {
			if err := write(client); !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
				t.Errorf("%s of %s: %v", how, gvr.Resource, err)
			}
		}
		if _, err := objects(t, shared.admin()).Resource(gvr).Namespace(ns).Get(t.Context(), "absent", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("%s: the object exists: %v", gvr.Resource, err)
		}
	}
}
