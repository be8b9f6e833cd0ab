package policy

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/hykube/hykube/api/v1alpha1"
)

// TestDocumentedPolicies evaluates each policy of docs/policies.md.
func TestDocumentedPolicies(t *testing.T) {
	page, err := os.ReadFile("../../docs/policies.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(page, -1)
	if len(blocks) < 5 {
		t.Fatalf("the page has %d policies", len(blocks))
	}
	for _, block := range blocks {
		var p v1alpha1.ClusterPlanPolicy // a PlanPolicy has the same fields, and one less
		if err := yaml.UnmarshalStrict(block[1], &p); err != nil {
			t.Errorf("%s\n%v", block[1], err)
			continue
		}
		if errs := Validate(p.Spec.PlanPolicySpec, field.NewPath("spec")); len(errs) > 0 {
			t.Errorf("%s: %v", p.Name, errs.ToAggregate())
		}
		v, err := NewSet(nil, []v1alpha1.ClusterPlanPolicy{p}, map[string]string{"stage": "prod"}).Evaluate(t.Context(), subject())
		if err != nil || strings.Contains(v.Denied(), "cannot be evaluated") {
			t.Errorf("%s: %v, %v", p.Name, v, err)
		}
	}
}
