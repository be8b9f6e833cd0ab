package registry

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/hykube/hykube/api/v1alpha1"
)

// TestAddressesOfAPlan validates lists of a Plan's spec.
func TestAddressesOfAPlan(t *testing.T) {
	many := make([]string, maxTargets+1)
	for i := range many {
		many[i] = fmt.Sprintf("sim_network.n%d", i)
	}
	for name, tc := range map[string]struct {
		addresses []string
		mode      v1alpha1.Mode
		want      string
	}{
		"valid":                 {addresses: []string{"sim_network.main", "sim-subnet/a", "data.sim_image.x"}},
		"as many as possible":   {addresses: many[1:]},
		"too many":              {addresses: many, want: "spec.targets: FieldValueTooMany"},
		"no address":            {addresses: []string{"main"}, want: "spec.targets[0]: FieldValueInvalid"},
		"twice":                 {addresses: []string{"sim_network.a", "sim-network/a"}, want: "spec.targets[1]: FieldValueDuplicate"},
		"a Secret":              {addresses: []string{"secret.a"}, want: "spec.targets[0]: FieldValueInvalid"},
		"another namespace":     {addresses: []string{"namespace.ops.sim_network.a"}, want: "spec.targets[0]: FieldValueInvalid"},
		"no action":             {addresses: []string{"sim_network.a"}, mode: v1alpha1.ModeAction, want: "spec.targets[0]: FieldValueInvalid"},
		"an action":             {addresses: []string{"action.sim_reboot.now"}, mode: v1alpha1.ModeAction},
		"a data source":         {addresses: []string{"data.sim_image.x"}, mode: v1alpha1.ModeManaged, want: "spec.targets[0]: FieldValueInvalid"},
		"no address, of action": {addresses: []string{"now"}, mode: v1alpha1.ModeAction, want: "spec.targets[0]: FieldValueInvalid"},
	} {
		errs := validateAddresses(tc.addresses, field.NewPath("spec", "targets"), tc.mode)
		if got := fieldsOf(errs); got != tc.want {
			t.Errorf("%s: %v, want %q", name, errs, tc.want)
		}
	}
}

// TestAPlanKeepsItsWorkflow changes the annotations of a plan. Those that name its workflow stay.
func TestAPlanKeepsItsWorkflow(t *testing.T) {
	old := &v1alpha1.Plan{ObjectMeta: metav1.ObjectMeta{Name: "p", Annotations: map[string]string{v1alpha1.AnnotationWorkflowID: "stack.web"}}}
	for why, tc := range map[string]struct {
		annotations map[string]string
		refused     int
	}{
		"no change": {map[string]string{v1alpha1.AnnotationWorkflowID: "stack.web"}, 0},
		"another":   {map[string]string{v1alpha1.AnnotationWorkflowID: "stack.web", "team": "a"}, 0},
		"removed":   {nil, 1},
		"added":     {map[string]string{v1alpha1.AnnotationWorkflowID: "stack.web", v1alpha1.AnnotationWorkflowRunID: "r"}, 1},
		"both":      {map[string]string{v1alpha1.AnnotationWorkflowID: "stack.db", v1alpha1.AnnotationWorkflowNamespace: "hykube.a"}, 2},
	} {
		p := old.DeepCopy()
		p.Annotations = tc.annotations
		if errs := validatePlanUpdate(p, old); len(errs) != tc.refused {
			t.Errorf("%s: %v, want %d errors", why, errs, tc.refused)
		}
	}
}
