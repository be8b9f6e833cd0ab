package server_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/hykube/hykube/api/v1alpha1"
	conditions "github.com/hykube/hykube/internal/condition"
)

// TestNotificationsOfANamespaceAreLimited makes as many Notifications as a namespace may have, and one more. Each change of
// a plan concerns all of them.
func TestNotificationsOfANamespaceAreLimited(t *testing.T) {
	ns := namespace(t, "many-notifications")
	client := objects(t, shared.admin()).Resource(v1alpha1.SchemeGroupVersion.WithResource("notifications")).Namespace(ns)
	create := func(name string) error {
		_, err := client.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": "Notification", "metadata": map[string]any{"name": name},
			"spec": map[string]any{"suspend": true, "webhook": map[string]any{"url": "https://example.com/hook"}},
		}}, metav1.CreateOptions{})
		return err
	}
	for i := range 20 {
		if err := create(fmt.Sprint("n", i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := create("last"); !apierrors.IsForbidden(err) {
		t.Errorf("one Notification more: %v", err)
	}
	if err := client.Delete(t.Context(), "n0", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := create("last"); err != nil {
		t.Errorf("after a deletion: %v", err)
	}
}

// TestNotificationsWithoutASecretAreReported writes Notifications whose Secret or key is missing. The author reads it at
// the write. A user who may not read the Secret does not learn which keys it has.
func TestNotificationsWithoutASecretAreReported(t *testing.T) {
	ns := namespace(t, "notification-secrets")
	var heard heardWarnings
	admin := rest.CopyConfig(shared.admin())
	admin.WarningHandler = &heard
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "hook"}, Data: map[string][]byte{"url": []byte("https://example.com/hidden"), "plain": []byte("http://example.com/hidden")}}
	if _, err := core(t, admin).CoreV1().Secrets(ns).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	client := objects(t, admin).Resource(v1alpha1.SchemeGroupVersion.WithResource("notifications")).Namespace(ns)
	notification := func(name, secret, key string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": "Notification", "metadata": map[string]any{"name": name},
			"spec": map[string]any{"webhook": map[string]any{"urlFrom": map[string]any{"name": secret, "key": key}}},
		}}
	}
	check := func(what string, obj *unstructured.Unstructured, err error, reason string, warnings int) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := conditions.Find(obj, v1alpha1.ConditionReady)["reason"].(string); got != reason || len(heard) != warnings || strings.Contains(strings.Join(heard, ""), "hidden") {
			t.Errorf("%s: the reason is %s, and the warnings are %q; want %s and %d", what, got, heard, reason, warnings)
		}
		heard = nil
	}
	for _, tc := range []struct {
		secret, key, reason string
		warnings            int
	}{
		{"hook", "url", v1alpha1.ReasonNothingSent, 0},
		{"hook", "none", v1alpha1.ReasonSecretNotFound, 1},
		{"none", "url", v1alpha1.ReasonSecretNotFound, 1},
		{"hook", "plain", v1alpha1.ReasonSecretRefused, 1},
	} {
		name := tc.secret + "-" + tc.key
		obj, err := client.Create(t.Context(), notification(name, tc.secret, tc.key), metav1.CreateOptions{})
		check(name, obj, err, tc.reason, tc.warnings)
		obj.SetLabels(map[string]string{"team": "a"})
		obj, err = client.Update(t.Context(), obj, metav1.UpdateOptions{})
		check(name+" with a label", obj, err, tc.reason, 0)
		_ = unstructured.SetNestedField(obj.Object, "Hello", "spec", "text")
		obj, err = client.Update(t.Context(), obj, metav1.UpdateOptions{})
		check(name+" with a text", obj, err, tc.reason, tc.warnings)
	}
	allow(t, ns, "notifiers", "writers", "notifications", "create")
	editor := rest.CopyConfig(shared.as("editor"))
	editor.WarningHandler = &heard
	_, err := objects(t, editor).Resource(v1alpha1.SchemeGroupVersion.WithResource("notifications")).Namespace(ns).Create(t.Context(), notification("other", "hook", "none"), metav1.CreateOptions{})
	if !apierrors.IsForbidden(err) || len(heard) > 0 {
		t.Errorf("a user without rights: %v, and the warnings %q", err, heard)
	}
}
