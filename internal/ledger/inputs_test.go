package ledger

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestEqualInputs compares an object with its last apply. Labels that were put back count while something else differs, because a
// stack would apply that.
func TestEqualInputs(t *testing.T) {
	object := func(tag, label string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"tag": tag}, "metadata": map[string]any{"labels": map[string]any{"stack": label}}}}
	}
	applied := InputsOf(object("a", "auto"))
	for why, c := range map[string]struct {
		applied Inputs
		now     *unstructured.Unstructured
		want    []string
	}{
		"as applied":                  {applied, object("a", "auto"), []string{"spec", "lifecycle", "labels"}},
		"another label":               {applied, object("a", "manual"), []string{"spec", "lifecycle"}},
		"an edit, and its old labels": {applied, object("b", "auto"), []string{"lifecycle"}},
		"a failed apply":              {Inputs{}, object("a", "auto"), nil},
	} {
		if got := c.applied.Equal(InputsOf(c.now)); !slices.Equal(got, c.want) {
			t.Errorf("%s: equal are %v, want %v", why, got, c.want)
		}
	}
}
