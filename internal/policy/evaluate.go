package policy

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"

	"github.com/hykube/hykube/api/v1alpha1"
)

const (
	// maxCost bounds the cost of one expression, in CEL's units: about one for each step. The limit permits a rule that
	// reads ten fields of each of 100,000 changes.
	maxCost = 10_000_000
	// maxTime bounds the evaluation of all rules for one plan.
	maxTime = 20 * time.Second
	// checkEvery is the number of loop iterations between two checks of the context.
	// Only 1 also interrupts small nested loops.
	checkEvery = 1
)

// environment declares the variables of expressions. docs/policies.md describes them.
var environment = sync.OnceValue(newEnvironment)

func newEnvironment() *cel.Env {
	document := cel.MapType(cel.StringType, cel.DynType)
	env, err := cel.NewEnv(
		cel.Variable("plan", document),
		cel.Variable("spec", document),
		cel.Variable("requester", document),
		cel.Variable("approvers", cel.ListType(document)),
		cel.Variable("counts", cel.MapType(cel.StringType, cel.IntType)),
		cel.Variable("providers", cel.ListType(cel.MapType(cel.StringType, cel.StringType))),
		cel.Variable("namespaceObject", document),
		cel.Variable("earlier", cel.ListType(document)),
		cel.Variable("now", cel.TimestampType),
		cel.OptionalTypes(), cel.CrossTypeNumericComparisons(true), cel.DefaultUTCTimeZone(true),
		ext.Strings(), ext.Lists(), ext.Sets(), ext.Math(), ext.TwoVarComprehensions(),
	)
	if err != nil {
		panic("declare the variables of policies: " + err.Error())
	}
	return env
}

// compile compiles an expression, and returns an error if its type is not want.
func compile(text string, want *cel.Type) (cel.Program, error) {
	ast, issues := environment().Compile(text)
	if issues.Err() != nil {
		return nil, issues.Err()
	}
	if got := ast.OutputType(); !got.IsExactType(want) && !got.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("the expression has the type %s, but must have the type %s", got, want)
	}
	return environment().Program(ast, cel.EvalOptions(cel.OptOptimize), cel.CostLimit(maxCost), cel.InterruptCheckFrequency(checkEvery))
}

// Evaluate evaluates all rules for a plan. If a rule cannot be evaluated, it counts as a denial. Evaluate returns an
// error if ctx ends, or if the plan cannot be converted.
func (s *Set) Evaluate(ctx context.Context, subject *Subject) (*Verdict, error) {
	v := &Verdict{restricted: s.HasAutomatic()}
	if s.Empty() {
		return v, nil
	}
	vars, err := subject.variables()
	if err != nil {
		return nil, err
	}
	bounded, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	for _, r := range s.rules {
		result := v1alpha1.PlanPolicyResult{Rule: r.path, Effect: r.Effect, Approvals: r.Approvals}
		holds, err := r.holds(bounded, vars)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil:
			result.Effect, result.Approvals = v1alpha1.PolicyDeny, nil
			result.Message = fmt.Sprintf("The rule cannot be evaluated, so it refuses every plan: %v. Correct the policy.", err)
		case !holds:
			continue
		default:
			result.Message = r.text(bounded, vars)
		}
		v.Results = append(v.Results, result)
	}
	return v, nil
}

func (r rule) holds(ctx context.Context, vars map[string]any) (bool, error) {
	if r.broken != nil {
		return false, r.broken
	}
	out, _, err := r.when.ContextEval(ctx, vars)
	if err != nil {
		return false, err
	}
	holds, ok := out.Value().(bool)
	if !ok {
		return false, errors.New("the condition is neither true nor false")
	}
	return holds, nil
}

// text returns the message of a rule that holds.
func (r rule) text(ctx context.Context, vars map[string]any) string {
	if r.message != nil {
		if out, _, err := r.message.ContextEval(ctx, vars); err == nil {
			if text, ok := out.Value().(string); ok && text != "" && len(text) <= maxMessage {
				return text
			}
		}
	}
	if r.Message != "" {
		return r.Message
	}
	return r.When
}
