package lang

import (
	"context"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/schema"
)

var anyValue = &schema.Block{Attributes: []*schema.Attribute{{Name: "v", Type: cty.DynamicPseudoType, Optional: true}}}

// costly takes about half of the limit of one evaluation.
const costly = "${length([for a in range(500) : [for b in range(500) : a]])}"

// counted returns a provider-defined function that reports each of its calls.
func counted(called func()) Functions {
	return Functions{"provider::test::count": function.New(&function.Spec{
		Params: []function.Parameter{{Name: "n", Type: cty.Number}}, Type: function.StaticReturnType(cty.Number),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { called(); return args[0], nil },
	})}
}

// TestARequestThatEndsStopsItsEvaluation ends a request in the middle of nested loops.
func TestARequestThatEndsStopsItsEvaluation(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	const last = 100
	calls := 0
	functions := counted(func() {
		if calls++; calls == last {
			cancel()
		}
	})
	c, diags := ConfigOptions{Functions: counted(func() {})}.Parse(map[string]any{"v": "${[for a in range(50) : [for b in range(50) : provider::test::count(b)]]}"}, anyValue)
	if diag.HasErrors(diags) {
		t.Fatal(diags)
	}
	_, diags = c.With(EvaluationContext{Functions: functions, Budget: BudgetOf(ctx)}).Evaluate(nil)
	if !diag.HasErrors(diags) || calls > last {
		t.Errorf("%d calls, want %d: %v", calls, last, diags)
	}
}

func TestTheExpressionsOfARequestShareABudget(t *testing.T) {
	ctx := WithBudget(t.Context(), nil)
	parse := func() diag.Diagnostics {
		_, diags := ConfigOptions{Budget: BudgetOf(ctx)}.Parse(map[string]any{"v": costly}, anyValue)
		return diags
	}
	accepted := 0
	for ; !diag.HasErrors(parse()); accepted++ {
		if accepted > 100 {
			t.Fatal("a request may evaluate without end")
		}
	}
	if accepted < 4 {
		t.Errorf("only %d costly specs are accepted in one request", accepted)
	}
	if diags := parse(); !strings.Contains(diags[0].Detail, "expressions of this request together") {
		t.Errorf("%+v", diags)
	}
	// Without the budget of a request, the limit of one evaluation remains.
	ctx = t.Context()
	if diags := parse(); diag.HasErrors(diags) {
		t.Error(diags)
	}
}

// TestCostlyEvaluationsWaitForEachOther holds the only slot.
func TestCostlyEvaluationsWaitForEachOther(t *testing.T) {
	slots := make(chan struct{}, 1)
	slots <- struct{}{}
	ctx, cancel := context.WithCancel(WithBudget(t.Context(), slots))
	parse := func(expr string) diag.Diagnostics {
		_, diags := ConfigOptions{Budget: BudgetOf(ctx)}.Parse(map[string]any{"v": expr}, anyValue)
		return diags
	}
	if diags := parse("${length(range(1000))}"); diag.HasErrors(diags) {
		t.Errorf("a cheap evaluation needs no slot: %v", diags)
	}
	done := make(chan diag.Diagnostics)
	go func() { done <- parse(costly) }()
	<-slots
	if diags := <-done; diag.HasErrors(diags) {
		t.Errorf("the slot was free: %v", diags)
	}
	slots <- struct{}{} // the evaluation has freed the slot
	go func() { done <- parse(costly) }()
	cancel()
	if diags := <-done; !diag.HasErrors(diags) {
		t.Error("an evaluation ran although its request ended before a slot was free")
	}
}
