package server

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The copy of its file that kubectl apply keeps is nothing that a person wrote.
func TestLastAppliedIsNoChange(t *testing.T) {
	before := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"a": "1"}}}
	after := before.DeepCopy()
	before.SetAnnotations(map[string]string{corev1.LastAppliedConfigAnnotation: "{}"})
	after.Object["data"] = map[string]any{"a": "2"}
	if keys := changedKeys(before, after); len(keys) != 1 || keys[0] != "a" {
		t.Errorf("changed are %q", keys)
	}
}
