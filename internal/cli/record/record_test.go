package record

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestEncodeStringData(t *testing.T) {
	for _, tc := range []struct {
		reason   string
		in, want map[string]any
	}{
		{"it wins over data, as the server has it", map[string]any{"apiVersion": "v1", "kind": "Secret", "data": map[string]any{"a": "eA==", "b": "eA=="}, "stringData": map[string]any{"b": "new"}},
			map[string]any{"apiVersion": "v1", "kind": "Secret", "data": map[string]any{"a": "eA==", "b": "bmV3"}}},
		{"the server refuses what is no text", map[string]any{"apiVersion": "v1", "kind": "Secret", "stringData": map[string]any{"b": int64(1)}},
			map[string]any{"apiVersion": "v1", "kind": "Secret", "stringData": map[string]any{"b": int64(1)}}},
		{"another kind", map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "stringData": map[string]any{"b": "x"}},
			map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "stringData": map[string]any{"b": "x"}}},
	} {
		encodeStringData(&unstructured.Unstructured{Object: tc.in})
		if d := cmp.Diff(tc.want, tc.in); d != "" {
			t.Errorf("%s (-want +got):\n%s", tc.reason, d)
		}
	}
}
