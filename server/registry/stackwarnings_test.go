package registry

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/hykube/hykube/api/v1alpha1"
)

// TestWarningsAboutASelector writes stacks beside one resource, which has the label stack=web.
func TestWarningsAboutASelector(t *testing.T) {
	resource := labels.Set{"stack": "web"}
	for why, tc := range map[string]struct {
		s     *v1alpha1.Stack
		fails error
		warns bool
	}{
		"it selects the resource":              {s: stackOf()},
		"a typing error":                       {s: stackOf(func(s *v1alpha1.StackSpec) { s.Selector.MatchLabels["stack"] = "wbe" }), warns: true},
		"no selector":                          {s: stackOf(func(s *v1alpha1.StackSpec) { s.Selector = nil })},
		"the server cannot read the resources": {s: stackOf(), fails: errors.New("timeout")},
	} {
		c := Config{Backend: &Backend{SelectsAny: func(_ context.Context, namespace string, selects func(labels.Set) bool) (bool, error) {
			return namespace == "prod" && selects(resource), tc.fails
		}}}
		got := c.warnSelector(t.Context(), tc.s)
		if (len(got) > 0) != tc.warns || tc.warns && !strings.HasPrefix(got[0], "spec.selector: ") {
			t.Errorf("%s: %q", why, got)
		}
	}
}

// TestWarningsAboutDependencies writes the stack web beside the stack network.
func TestWarningsAboutDependencies(t *testing.T) {
	network := *stackOf()
	network.Name = "network"
	for why, tc := range map[string]struct {
		dependsOn []string
		fields    []string
		hint      bool
	}{
		"none":                     {},
		"an existing stack":        {dependsOn: []string{"network"}},
		"a typing error":           {dependsOn: []string{"network", "netwrok"}, fields: []string{"spec.dependsOn[1]"}, hint: true},
		"two that are not there":   {dependsOn: []string{"a-base", "b-base"}, fields: []string{"spec.dependsOn[0]", "spec.dependsOn[1]"}},
		"the stack itself, stored": {dependsOn: []string{"web"}, fields: []string{"spec.dependsOn[0]"}},
	} {
		s := stackOf(func(s *v1alpha1.StackSpec) { s.DependsOn = tc.dependsOn })
		var fields []string
		hint := false
		for _, w := range warnDependencies(s, []v1alpha1.Stack{network, *stackOf()}) {
			field, _, _ := strings.Cut(w, ":")
			fields = append(fields, field)
			hint = hint || strings.Contains(w, `"network"`)
		}
		if !slices.Equal(fields, tc.fields) || hint != tc.hint {
			t.Errorf("%s: warnings about %q, hint %t", why, fields, hint)
		}
	}
}
