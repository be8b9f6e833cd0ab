package record

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The metadata of an object show each change of it.
func TestMetadataShowAChange(t *testing.T) {
	for field, value := range map[string]any{
		"": nil, "generation": int64(2), "labels": map[string]any{"a": "b"}, "annotations": map[string]any{"a": "b"}, "finalizers": []any{"example.com/held"},
		"ownerReferences": []any{map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "u"}},
	} {
		before := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Generation: 1, ResourceVersion: "1"}}
		after := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"generation": int64(1), "resourceVersion": "2"}}}
		if field != "" {
			after.Object["metadata"].(map[string]any)[field] = value
		}
		if got := sameContent(before, after); got != (field == "") {
			t.Errorf("with another %q: the same content is %t", field, got)
		}
	}
}
