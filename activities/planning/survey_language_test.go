package planning

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"

	"github.com/google/go-cmp/cmp"
)

func TestSurveyVisitsWhatAsksForTheTime(t *testing.T) {
	for expression, want := range map[string][]string{
		"${timestamp()}": {"clock", "after"}, "${plantimestamp()}": {"clock", "after"}, "a-${uuid()}": {"clock", "after"}, `${bcrypt("a")}`: {"clock", "after"},
		`${upper("a")}`: {}, "timestamp()": {},
	} {
		e := newEstate(t, "before")
		e.put("clock", "", map[string]any{"uses": expression}, nil)
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
		e := newEstate(t, "a")
		e.put("b", "!", nil, map[string]any{"preconditions": []any{map[string]any{"condition": condition, "errorMessage": "no"}}})
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
		e := newEstate(t, "a")
		e.put("r", "!", nil, map[string]any{"replaceTriggeredBy": []any{text}})
		_, diags := e.visit(v1alpha1.PlanSpec{})
		if want == "" {
			if n := e.added[1].Parse(); len(diags) > 0 || !cmp.Equal(n.DependsOn, []lang.Address{{Type: "test_thing", Name: "a"}}) {
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
	e.put("many", "!", map[string]any{"uses": text.String()}, nil)
	asked := 0
	diags := lang.CheckReferences(e.added[10].Parse().References, lang.Catalog{
		Block: e.w.Block, Exists: func(lang.Address) bool { return false }, Names: func(lang.Address) []string { asked++; return nil },
	})
	if len(diags) != 3000 || asked > 100 {
		t.Errorf("%d problems, and %d looks at all names", len(diags), asked)
	}
}
