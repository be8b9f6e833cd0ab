package server_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/hykube/hykube/api/v1alpha1"
)

// TestErrorsOfPatchesHaveNoObject patches objects so that they cannot be decoded. The errors name the field, and have
// nothing of the object: a user may patch a Secret without a right to read it.
func TestErrorsOfPatchesHaveNoObject(t *testing.T) {
	ns := namespace(t, "patch-errors")
	// Only a large answer is compressed.
	large := map[string]string{}
	for _, name := range []string{"a", "b"} {
		large[name] = strings.Repeat("hidden", 20_000)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "hook"}, StringData: map[string]string{"key": "hidden"}}
	if _, err := core(t, shared.admin()).CoreV1().Secrets(ns).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := core(t, shared.admin()).CoreV1().ConfigMaps(ns).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "hook"}, Data: large}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	stack := &unstructured.Unstructured{Object: map[string]any{"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": "Stack",
		"metadata": map[string]any{"name": "hook", "annotations": map[string]any{"note": "hidden"}}, "spec": map[string]any{"suspend": true}}}
	if _, err := objects(t, shared.admin()).Resource(v1alpha1.SchemeGroupVersion.WithResource("stacks")).Namespace(ns).Create(t.Context(), stack, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		resource, kind string
		media          types.PatchType
		patch, field   string
	}{
		{"stacks", "Stack", types.JSONPatchType, `[{"op":"replace","path":"/spec/suspend","value":"yes"}]`, "spec.suspend"},
		{"stacks", "Stack", types.JSONPatchType, `[{"op":"add","path":"/spec/plan/triggers/-","value":5}]`, "spec.plan.triggers[1]"},
		{"stacks", "Stack", types.MergePatchType, `{"spec":{"suspend":"yes"}}`, "spec.suspend"},
		{"secrets", "Secret", types.JSONPatchType, `[{"op":"add","path":"/metadata/labels","value":"x"}]`, "metadata.labels"},
		{"secrets", "Secret", types.MergePatchType, `{"data":"x"}`, "data"},
		{"secrets", "Secret", types.StrategicMergePatchType, `{"immutable":"x"}`, "immutable"},
		{"secrets", "Secret", types.JSONPatchType, `[{"op":"replace","path":"/data/key","value":"%"}]`, ""}, // no base64
		{"configmaps", "ConfigMap", types.JSONPatchType, `[{"op":"add","path":"/metadata/labels","value":"x"}]`, "metadata.labels"},
	} {
		for _, accept := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON, runtime.ContentTypeYAML} {
			config := rest.CopyConfig(shared.admin())
			config.AcceptContentTypes = accept
			c, err := kubernetes.NewForConfig(config)
			if err != nil {
				t.Fatal(err)
			}
			path := "/api/v1"
			if tc.resource == "stacks" {
				path = "/apis/" + v1alpha1.SchemeGroupVersion.String()
			}
			err = c.CoreV1().RESTClient().Patch(tc.media).AbsPath(path, "namespaces", ns, tc.resource, "hook").Body([]byte(tc.patch)).Do(t.Context()).Error()
			if err == nil || strings.Contains(err.Error(), "hidden") || strings.Contains(err.Error(), "aGlkZGVu") {
				t.Errorf("%s of %s as %s: the error has the object: %.300v", tc.media, tc.resource, accept, err)
				continue
			}
			status := err.(apierrors.APIStatus).Status()
			if tc.field != "" && tc.media != types.StrategicMergePatchType && (!apierrors.IsInvalid(err) || status.Details.Kind != tc.kind || status.Details.Name != "hook" ||
				len(status.Details.Causes) != 1 || !strings.Contains(status.Details.Causes[0].Message, tc.field+":")) {
				t.Errorf("%s of %s as %s: %v (%+v)", tc.media, tc.resource, accept, err, status.Details)
			}
		}
	}
}
