package policy

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/hykube/hykube/api/v1alpha1"
)

func TestFieldsAreKnownWhenWritten(t *testing.T) {
	for when, want := range map[string]string{
		`counts.deleted > 0`:                                                `there is no field "deleted": did you mean "delete"?`,
		`counts["deleted"] > 0`:                                             `did you mean "delete"?`,
		`spec.?destory.orValue(false)`:                                      `did you mean "destroy"?`,
		`plan.resource_change.size() > 0`:                                   `did you mean "resource_changes"?`,
		`plan.resource_changes.exists(c, "delete" in c.changes.actions)`:    `did you mean "change"?`,
		`plan.resource_changes.exists(c, "delete" in c.change.action)`:      `did you mean "actions"?`,
		`plan.resource_changes[0].adress == "x"`:                            `did you mean "address"?`,
		`plan.resource_changes.exists(i, c, c.typ == "x")`:                  `did you mean "type"?`,
		`approvers.all(a, a.name == "x")`:                                   `there is no field "name"; use one of groups, username`,
		`requester.groups.exists(g, g.startsWith(requester.usrname))`:       `did you mean "username"?`,
		`namespaceObject.metadata.label.stage == "prod"`:                    `did you mean "labels"?`,
		`earlier.exists(e, e.outcom == "x")`:                                `did you mean "outcome"?`,
		`plan.resource_changes.exists(c, c.change.after.anything.at.all)`:   "",
		`namespaceObject.metadata.labels.anything == "x"`:                   "",
		`has(plan.nothing) || has(spec.nothing)`:                            "",
		`"deleted" in counts`:                                               "",
		`counts[requester.username] > 0`:                                    "",
		`earlier.exists(e, e.metadata.name == "x" || e.plan.name == "x")`:   "",
		`plan.applyable && plan.format_version == "1.2"`:                    "",
		`plan.resource_changes.map(c, {"a": c.address}).all(m, m.a != "x")`: "",
	} {
		errs := Validate(v1alpha1.PlanPolicySpec{Rules: []v1alpha1.PlanPolicyRule{deny(when)}}, field.NewPath("spec"))
		if want == "" && len(errs) > 0 || want != "" && (len(errs) != 1 || !strings.Contains(errs[0].Error(), want)) {
			t.Errorf("%s: %v, want %q", when, errs, want)
		}
	}
}

// TestFieldsOfPlansAreKnown expects every field of a real plan in the shapes, so that no rule is refused in error.
func TestFieldsOfPlansAreKnown(t *testing.T) {
	s := subject()
	vars, err := s.variables(s.shown)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(vars)
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]any
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	var compare func(at string, v any, s *shape)
	compare = func(at string, v any, s *shape) {
		if s == nil {
			return
		}
		switch v := v.(type) {
		case map[string]any:
			for name, child := range v {
				known, ok := s.fields[name]
				if s.fields != nil && !ok {
					t.Errorf("%s.%s is not known", at, name)
				}
				compare(at+"."+name, child, known)
			}
		case []any:
			for _, child := range v {
				compare(at+"[]", child, s.element)
			}
		}
	}
	for name, v := range all {
		if s := shapes()[name]; s != nil {
			compare(name, v, s)
		} else if name != "now" {
			t.Errorf("%s is not known", name)
		}
	}
}
