package planning

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/resource"

	"github.com/google/go-cmp/cmp"
)

// with sets fields of the spec and of the lifecycle of the thing that was added last.
func (e *estate) with(spec map[string]any, l resource.Lifecycle) {
	n := e.nodes[len(e.nodes)-1]
	n.Object.Object["spec"], n.Lifecycle = spec, l
}

func TestSurveyVisitsWhatAsksForTheTime(t *testing.T) {
	for expression, want := range map[string][]string{
		"${timestamp()}": {"clock", "after"}, "${plantimestamp()}": {"clock", "after"}, "a-${uuid()}": {"clock", "after"}, `${bcrypt("a")}`: {"clock", "after"},
		`${upper("a")}`: {}, "timestamp()": {},
	} {
		e := newEstate(t, "before", "clock")
		e.with(map[string]any{"uses": expression}, resource.Lifecycle{})
		e.add("after<clock")
		if got, diags := e.visit(v1alpha1.PlanSpec{}); !cmp.Equal(got, want) || len(diags) > 0 {
			t.Errorf("%s: visits %v, want %v; %v", expression, got, want, diags)
		}
	}
}

func TestSurveyChecksTheTypesOfConditions(t *testing.T) {
	for condition, want := range map[string]string{
		`${test_thing.a.id == "x"}`:                 "",
		`${test_thing.a}`:                           "lifecycle.preconditions[0].condition: The result must be a bool",
		`${test_thing.a.id.x == ""}`:                `lifecycle.preconditions[0].condition, column 3: The attribute "id" is a string`,
		`${upper(test_thing.a) == "x"}`:             `lifecycle.preconditions[0].condition, column 9: In the call of upper(): Invalid value for "str" parameter`,
		`${one([for x in [test_thing.a] : x.idd])}`: `lifecycle.preconditions[0].condition, column 35: x has no attribute "idd". Did you mean "id"?`,
	} {
		e := newEstate(t, "a", "b!")
		e.with(nil, resource.Lifecycle{Preconditions: []resource.Check{{Condition: condition, ErrorMessage: "no"}}})
		_, diags := e.visit(v1alpha1.PlanSpec{})
		var got string
		if len(diags) > 0 {
			got = diags[0].Attribute + ": " + diags[0].Detail
		}
		if (want == "") != (got == "") || !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %q, want %q", condition, got, want)
		}
	}
}

func TestReplaceIsTriggeredByKinds(t *testing.T) {
	for text, want := range map[string]string{
		"test-thing/a": "", "test_thing.a": "", "test_thing.a.id": "", `test_thing["a"]`: "",
		"test-thing/a.id": `write test_thing.a.id for the attribute, or test_thing["a.id"] for the resource of that name: a name may have dots`,
		"test-thing/a[0]": "test_thing.a is no ResourceSet, so a reference to it must not have a key",
		"test-thing/":     "not the address of a resource",
		"test-thing/b":    `no test-thing named "b"`,
	} {
		e := newEstate(t, "a", "r!")
		e.with(nil, resource.Lifecycle{ReplaceTriggeredBy: []string{text}})
		_, diags := e.visit(v1alpha1.PlanSpec{})
		if want == "" {
			if n := e.nodes[1]; len(diags) > 0 || !cmp.Equal(n.DependsOn, []lang.Address{{Type: "test_thing", Name: "a"}}) {
				t.Errorf("%s: depends on %v; %v", text, n.DependsOn, diags)
			}
			continue
		}
		if len(diags) != 1 || diags[0].Attribute != "lifecycle.replaceTriggeredBy[0]" || !strings.Contains(diags[0].Detail, want) {
			t.Errorf("%s: got %v, want %q", text, diags, want)
		}
	}
}

// broken is an estate of n things that all refer to something that there is not, and is near to something that there is.
func broken(t *testing.T, n int) *estate {
	t.Helper()
	e := newEstate(t)
	for i := range n {
		e.add(fmt.Sprintf("thing-%06d<thimg-%06d!", i, i))
	}
	return e
}

// Only some problems suggest a similar name, because a Plan shows no more.
func TestManyBadReferencesCostLittle(t *testing.T) {
	const n = 3000
	e := broken(t, n)
	_, diags := e.visit(v1alpha1.PlanSpec{})
	hints := 0
	for _, d := range diags {
		if strings.Contains(d.Detail, "Did you mean") {
			hints++
		}
	}
	if len(diags) != n || hints != diag.MaxDiagnostics {
		t.Errorf("%d problems, and %d near names", len(diags), hints)
	}
}

// TestManyBadReferencesOfOneThing has one object with many bad references, which takes no longer.
func TestManyBadReferencesOfOneThing(t *testing.T) {
	e := broken(t, 10)
	var text strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&text, "${test_thing.x%d.id}", i)
	}
	e.add("many!")
	e.with(map[string]any{"uses": text.String()}, resource.Lifecycle{})
	s := e.survey(v1alpha1.PlanSpec{})
	asked := 0
	diags := lang.CheckReferences(e.nodes[10].References, lang.Catalog{
		Block: e.hands.Block, Exists: s.exists, Names: func(lang.Address) []string { asked++; return nil },
	})
	if len(diags) != 3000 || asked > 100 {
		t.Errorf("%d problems, and %d looks at all names", len(diags), asked)
	}
}

func BenchmarkBadReferences(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			t := &testing.T{}
			for b.Loop() {
				b.StopTimer()
				e := broken(t, n)
				b.StartTimer()
				if _, diags := e.visit(v1alpha1.PlanSpec{}); len(diags) != n {
					b.Fatal(len(diags))
				}
			}
		})
	}
}
