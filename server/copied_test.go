package server_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hykube/hykube/api/v1alpha1"
)

// TestCopiesOfPlansWait applies a plan from a backup or from another server that approved itself there.
func TestCopiesOfPlansWait(t *testing.T) {
	ns := namespace(t, "copies")
	client := objects(t, shared.admin()).Resource(plans).Namespace(ns)
	for name, c := range map[string]struct {
		change func(*unstructured.Unstructured)
		mark   string // empty when the plan approves itself
	}{
		"as-written": {func(*unstructured.Unstructured) {}, ""},
		"with-the-annotation-of-kubectl-apply": {func(u *unstructured.Unstructured) {
			u.SetAnnotations(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": `{"spec":{"approval":"Automatic"}}`})
		}, ""},
		"with-its-uid":           {func(u *unstructured.Unstructured) { u.SetUID("6f3b1f6e-0000-4000-8000-000000000000") }, "uid"},
		"with-its-creation-time": {func(u *unstructured.Unstructured) { u.SetCreationTimestamp(metav1.Now()) }, "creationTimestamp"},
		"with-its-generation":    {func(u *unstructured.Unstructured) { u.SetGeneration(1) }, "metadata"},
		"with-managed-fields": {func(u *unstructured.Unstructured) {
			u.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "kubectl", Operation: "Update", APIVersion: "hykube.io/v1alpha1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:approval":{}}}`)}})
		}, "managedFields"},
		"with-a-status": {func(u *unstructured.Unstructured) {
			u.Object["status"] = map[string]any{"digest": digest, "automaticApproval": map[string]any{"granted": true}}
		}, "status"},
		"restored-by-kubectl-apply": {func(u *unstructured.Unstructured) {
			u.SetAnnotations(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": `{"spec":{"approval":"Automatic"},"status":{"digest":"x"}}`})
		}, "last-applied-configuration"},
		"with-all-but-spec-and-annotations-removed": {func(u *unstructured.Unstructured) {
			u.SetAnnotations(map[string]string{v1alpha1.AnnotationCreatedAs: "6f3b1f6e-0000-4000-8000-000000000000"})
		}, v1alpha1.AnnotationCreatedAs},
	} {
		p := newPlan(name, map[string]any{"approval": "Automatic"})
		c.change(p)
		made, err := client.Create(t.Context(), p, metav1.CreateOptions{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		check(t, name, made, c.mark)
		if p.GetUID() != "" || len(p.GetManagedFields()) > 0 {
			continue // which an apply refuses
		}
		p.SetName(name + "-applied")
		made, err = client.Apply(t.Context(), p.GetName(), p, metav1.ApplyOptions{FieldManager: "test"})
		if err != nil {
			t.Errorf("%s by server-side apply: %v", name, err)
			continue
		}
		check(t, name+" by server-side apply", made, c.mark)
	}
}

func check(t *testing.T, name string, made *unstructured.Unstructured, mark string) {
	t.Helper()
	var p v1alpha1.Plan
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(made.Object, &p); err != nil {
		t.Fatal(err)
	}
	switch {
	case p.Status.AutomaticApproval == nil || p.ApprovesItself() != (mark == ""):
		t.Errorf("%s: automatic approval is %+v", name, p.Status.AutomaticApproval)
	case !strings.Contains(p.Status.AutomaticApproval.Message, mark):
		t.Errorf("%s: %q does not say %q", name, p.Status.AutomaticApproval.Message, mark)
	case mark != "" && !strings.Contains(p.Status.Conditions[0].Message, p.Status.AutomaticApproval.Message):
		t.Errorf("%s: the condition does not say why it waits: %q", name, p.Status.Conditions[0].Message)
	}
	if p.Generation != 1 || p.Status.Digest != "" || p.Annotations[v1alpha1.AnnotationCreatedAs] != string(p.UID) {
		t.Errorf("%s: generation %d, digest %q, annotations %v", name, p.Generation, p.Status.Digest, p.Annotations)
	}
}
