package policy

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
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
var environment = sync.OnceValue(func() *cel.Env { return newEnvironment() })

// evaluated is the environment of the programs, whose has() knows unknown values.
var evaluated = sync.OnceValue(func() *cel.Env { return newEnvironment(cel.Macros(hasMacro)) })

func newEnvironment(more ...cel.EnvOption) *cel.Env {
	document := cel.MapType(cel.StringType, cel.DynType)
	env, err := cel.NewEnv(append([]cel.EnvOption{
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
	}, more...)...)
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
	ast, issues = evaluated().Compile(text)
	if issues.Err() != nil {
		return nil, issues.Err()
	}
	return evaluated().Program(ast, cel.CustomDecorator(decorate), cel.EvalOptions(cel.OptOptimize),
		cel.CostLimit(maxCost), cel.InterruptCheckFrequency(checkEvery))
}

// Evaluate evaluates all rules for a plan. If a rule cannot be evaluated, it counts as a denial. A rule that depends on
// an unknown value is undecided. Evaluate returns an error if ctx ends, or if the plan cannot be converted.
func (s *Set) Evaluate(ctx context.Context, subject *Subject) (*Verdict, error) {
	v := &Verdict{restricted: s.HasAutomatic(), lapsed: s.lapsedRules(), users: map[string]*v1alpha1.Identity{},
		undecided: map[int32]bool{}}
	for _, a := range subject.Approvals {
		if a.By != nil {
			v.users[a.By.String()] = a.By
		}
	}
	v.contributors, v.unnamed = names(subject.plan.Status.Contributors), haveUnnamed(subject.plan.Status.Contributors)
	v.othersWrote, v.changes = othersWrote(subject.plan), subject.counts.Changes()
	v.wayOn = AfterArguments(subject.plan.Status.Contributors)
	if s.Empty() {
		return v, nil
	}
	vars, err := subject.variables(subject.changes)
	if err != nil {
		return nil, err
	}
	shown := sync.OnceValues(func() (map[string]any, error) { return subject.variables(subject.shown) })
	bounded, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	for _, r := range s.rules {
		if r.Effect == v1alpha1.PolicyAllowAutomatic && r.lapsed != "" {
			continue
		}
		result := v1alpha1.PlanPolicyResult{Rule: r.path, Effect: r.Effect, Approvals: r.Approvals, Author: r.author}
		holds, unknown, err := r.holds(bounded, vars)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil:
			result.Effect, result.Approvals = v1alpha1.PolicyDeny, nil
			result.Message = fmt.Sprintf("The rule cannot be evaluated, so it refuses every plan: %v. Correct the policy.", err)
		case unknown != nil:
			result.Undecided, result.Message = subject.undecided(unknown), r.fixedText()
			for _, i := range unknown {
				v.undecided[i] = true
			}
		case !holds:
			continue
		default:
			if result.Message, err = r.text(bounded, shown); err != nil {
				return nil, err
			}
		}
		v.Results = append(v.Results, result)
	}
	return v, nil
}

// holds reports whether the condition of a rule is true. unknown are the indexes of the changes whose unknown values
// decide that; nil if it is decided.
func (r rule) holds(ctx context.Context, vars map[string]any) (holds bool, unknown []int32, err error) {
	if r.broken != nil {
		return false, nil, r.broken
	}
	out, _, err := r.when.ContextEval(ctx, vars)
	if err != nil {
		return false, nil, err
	}
	if u, ok := out.(*types.Unknown); ok {
		return false, changesOf(u), nil
	}
	holds, ok := out.Value().(bool)
	if !ok {
		return false, nil, errors.New("the condition is neither true nor false")
	}
	return holds, nil, nil
}

// text returns the message of a rule that holds. shown returns the variables with masked values, because every reader
// of the plan sees the message.
func (r rule) text(ctx context.Context, shown func() (map[string]any, error)) (string, error) {
	if r.message == nil {
		return r.fixedText(), nil
	}
	vars, err := shown()
	if err != nil {
		return "", err
	}
	if out, _, err := r.message.ContextEval(ctx, vars); err == nil {
		if text, ok := out.Value().(string); ok && text != "" && len(text) <= maxMessage {
			return text, nil
		}
	}
	return r.fixedText(), nil
}

// fixedText returns the message of a rule that depends on no plan.
func (r rule) fixedText() string {
	if r.Message != "" {
		return r.Message
	}
	return r.When
}
