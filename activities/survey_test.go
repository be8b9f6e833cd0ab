package activities

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/plan"
	"github.com/hykube/hykube/internal/schema"
)

// estate is a namespace of test_thing objects. Each is written as "name", "name<other" (refers to other), with "!" behind
// it when it was never applied, "~" when it was changed since, and "-" when it is marked for deletion.
type estate struct {
	t     *testing.T
	hands *Activities
	nodes []*node
}

func newEstate(t *testing.T, things ...string) *estate {
	t.Helper()
	block := &schema.Block{Attributes: []*schema.Attribute{
		{Name: "id", Type: cty.String, Computed: true},
		{Name: "uses", Type: cty.String, Optional: true},
	}}
	c := catalog.New(nil)
	c.Put(catalog.Entry{Name: "test", Schema: &schema.Provider{Resources: map[string]*schema.Schema{"test_thing": {Block: block}}}})
	e := &estate{t: t, hands: &Activities{Config: Config{Catalog: c}}}
	for _, thing := range things {
		e.add(thing)
	}
	return e
}

func (e *estate) add(thing string) {
	flags := thing[len(strings.TrimRight(thing, "!~-")):]
	name, uses, _ := strings.Cut(strings.TrimRight(thing, "!~-"), "<")
	spec := map[string]any{}
	if uses != "" {
		spec["uses"] = "${test_thing." + uses + ".id}"
	}
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "test.hykube.io/v1", "kind": "test-thing", "spec": spec}}
	good := &status{generation: 2, observed: 2}
	condition.Ready(&good.conditions, 2, v1alpha1.ReasonApplied, "")
	obj.Object["status"] = good.toMap()
	obj.SetName(name)
	obj.SetUID(types.UID(name))
	obj.SetGeneration(2)
	obj.SetLabels(map[string]string{"name": name})
	if strings.Contains(flags, "-") {
		obj.SetDeletionTimestamp(new(metav1.Now()))
	}
	r, err := resourceOf(obj, e.hands.Catalog)
	if err != nil {
		e.t.Fatal(err)
	}
	n := &node{resource: r, record: &ledger.Instance{Object: r.ref}}
	if !strings.Contains(flags, "!") {
		n.record.Attributes = []byte(`{}`)
		if uses != "" {
			n.requires = []plan.Address{{Type: "test_thing", Name: uses}}
		}
	}
	if strings.Contains(flags, "~") {
		n.record.Object.Generation = 1
	}
	e.nodes = append(e.nodes, n)
}

// visit returns the names that a plan looks at, in its order.
func (e *estate) visit(spec v1alpha1.PlanSpec) ([]string, plan.Diagnostics) {
	s := &survey{spec: &spec, nodes: e.nodes}
	for _, n := range e.nodes {
		if n.wanted = !n.deleting && !spec.Destroy; n.wanted {
			n.parse(nil)
		}
	}
	s.index()
	names := []string{}
	for _, i := range s.visit(e.hands) {
		names = append(names, e.nodes[i].ref.Name)
	}
	return names, s.diags
}

func TestSurveyVisitsWhatThePlanIsAbout(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		things []string
		spec   v1alpha1.PlanSpec
		want   []string
	}{
		"nothing changed": {
			reason: "a plan costs what the change deserves",
			things: []string{"a", "b<a"}, want: []string{},
		},
		"one changed": {
			reason: "what depends on it may change, too; what it depends on does not",
			things: []string{"a", "b<a~", "c<b", "d"}, want: []string{"b", "c"},
		},
		"new ones": {
			reason: "dependencies come first, however they are listed",
			things: []string{"z<y!", "y<x!", "x!"}, want: []string{"x", "y", "z"},
		},
		"refresh all": {
			reason: "drift can be anywhere",
			things: []string{"b<a", "a"}, spec: v1alpha1.PlanSpec{Refresh: v1alpha1.RefreshAll}, want: []string{"a", "b"},
		},
		"target": {
			reason: "with what it depends on, and nothing else",
			things: []string{"a!", "b<a!", "c!"}, spec: v1alpha1.PlanSpec{Targets: []string{"test_thing.b"}}, want: []string{"a", "b"},
		},
		"exclude": {
			reason: "and what depends on it",
			things: []string{"a!", "b<a!", "c<b!", "d!"}, spec: v1alpha1.PlanSpec{Exclude: []string{"test_thing.b"}}, want: []string{"a", "d"},
		},
		"exclude from a destroy": {
			reason: "what it stands on stays, too",
			things: []string{"a", "b<a", "c<b", "d"}, spec: v1alpha1.PlanSpec{Exclude: []string{"test_thing.b"}, Destroy: true}, want: []string{"c", "d"},
		},
		"selector": {
			reason: "as targets",
			things: []string{"a!", "b<a!", "c!"},
			spec:   v1alpha1.PlanSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"name": "c"}}}, want: []string{"c"},
		},
		"destroy of a target": {
			reason: "with what depends on it",
			things: []string{"a", "b<a", "c"},
			spec:   v1alpha1.PlanSpec{Destroy: true, Targets: []string{"test-thing/a"}}, want: []string{"a", "b"},
		},
		"replace": {
			reason: "asked for, though nothing changed",
			things: []string{"a", "b"}, spec: v1alpha1.PlanSpec{Replace: []string{"test_thing.b"}}, want: []string{"b"},
		},
		"never applied and destroyed": {
			reason: "there is nothing to destroy",
			things: []string{"a!"}, spec: v1alpha1.PlanSpec{Destroy: true}, want: []string{},
		},
		"marked for deletion": {
			reason: "it is destroyed and released",
			things: []string{"a", "b-"}, want: []string{"b"},
		},
		"only what was applied is refreshed": {
			reason: "there is nothing to read of what was never made",
			things: []string{"a", "b!"}, spec: v1alpha1.PlanSpec{RefreshOnly: true}, want: []string{"a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, diags := newEstate(t, tc.things...).visit(tc.spec)
			if plan.HasErrors(diags) {
				t.Fatalf("%+v", diags)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestSurveyRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		things []string
		spec   v1alpha1.PlanSpec
		want   string
	}{
		"cycle":                     {things: []string{"a<b!", "b<c!", "c<a!"}, want: "test_thing.a -> test_thing.b -> test_thing.c -> test_thing.a"},
		"reference to nothing":      {things: []string{"a<mian!", "main"}, want: "main"},
		"reference to what goes":    {things: []string{"a<b", "b-"}, want: "marked for deletion"},
		"target that is not there":  {things: []string{"a"}, spec: v1alpha1.PlanSpec{Targets: []string{"test_thing.b"}}, want: `"b"`},
		"selector of nothing":       {things: []string{"a"}, spec: v1alpha1.PlanSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"name": "b"}}}, want: "name=b"},
		"target that is no address": {things: []string{"a"}, spec: v1alpha1.PlanSpec{Targets: []string{"what"}}, want: "TYPE.NAME"},
	} {
		t.Run(name, func(t *testing.T) {
			_, diags := newEstate(t, tc.things...).visit(tc.spec)
			if !plan.HasErrors(diags) || !strings.Contains(describe(diags), tc.want) {
				t.Errorf("got %q, want an error with %q", describe(diags), tc.want)
			}
		})
	}
}

func TestABrokenObjectOutsideTheTargetsDoesNotMatter(t *testing.T) {
	got, diags := newEstate(t, "a!", "broken<nothing!").visit(v1alpha1.PlanSpec{Targets: []string{"test_thing.a"}})
	if diff := cmp.Diff([]string{"a"}, got); diff != "" || plan.HasErrors(diags) {
		t.Errorf("%s %+v", diff, diags)
	}
}
