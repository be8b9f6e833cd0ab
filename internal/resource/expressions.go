package resource

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
)

// Expressions are those of a resource's spec and lifecycle, and what they refer to.
type Expressions struct {
	Config *lang.Config
	// LifecycleExpressions are the conditions, their messages, and what an import names.
	LifecycleExpressions []*lang.Expression
	// References are those of all expressions; DependsOn what they name in this namespace, beside lifecycle.dependsOn.
	References []lang.Reference
	DependsOn  []lang.Address
	// External is true when expressions refer to something that no plan of this namespace changes, such as a ConfigMap.
	External bool
	// Impure is true when expressions may give another value each time: they read the clock, for example.
	Impure bool
	// Invalid holds what is wrong.
	Invalid diag.Diagnostics
}

// Parse reads the expressions of the spec and of the lifecycle. What is wrong with them is among the result.
func (r *Resource) Parse(functions lang.Functions) Expressions {
	var n Expressions
	var diags diag.Diagnostics
	n.Config, diags = lang.ConfigOptions{
		Functions: functions, Namespace: r.Ref.Namespace, Ephemeral: r.Mode == v1alpha1.ModeEphemeral,
	}.Parse(r.Spec(), r.Schema.Block)
	n.References = n.Config.References()
	n.Impure = n.Config.Impure()
	for _, which := range []string{Preconditions, Postconditions} {
		checks, more := ChecksOf(r, which, lang.ExpressionOptions{Functions: functions})
		n.References, diags = append(n.References, References(checks)...), append(diags, more...)
		for _, c := range checks {
			n.LifecycleExpressions = append(n.LifecycleExpressions, c.condition, c.message)
		}
	}
	triggers, more := TriggersOf(r)
	diags = append(diags, more...)
	for _, t := range triggers {
		for _, ref := range t.References() {
			ref.Field, _, _ = strings.Cut(ref.Field, ", ") // the column counts what nobody wrote
			n.References = append(n.References, ref)
		}
	}
	imports, more := r.importExpressions(lang.ExpressionOptions{Functions: functions})
	diags = append(diags, more...)
	for _, e := range imports {
		n.References = append(n.References, e.References()...)
		n.LifecycleExpressions = append(n.LifecycleExpressions, e)
	}
	seen := map[lang.Address]bool{}
	depend := func(addr lang.Address) {
		switch {
		case addr.Namespace != "" || addr.Type == lang.TypeConfigMap || addr.Type == lang.TypeSecret:
			n.External = true
		case addr == r.Addr:
			if !seen[addr] {
				diags = append(diags, lang.Problem(r.Addr, "", "Self-referential resource",
					fmt.Sprintf("%s refers to itself, and cannot know its own values before it is planned. Remove the reference; a postcondition can speak of self.", r.Addr)))
			}
			seen[addr] = true
		case !seen[addr]:
			seen[addr] = true
			n.DependsOn = append(n.DependsOn, addr)
		}
	}
	for _, ref := range n.References {
		depend(ref.Address)
	}
	n.Invalid = lang.WithAddress(diags, r.Addr)
	slices.SortFunc(n.DependsOn, lang.Address.Compare)
	for i, s := range r.Lifecycle.DependsOn {
		addr, err := lang.ParseAddress(s)
		if err != nil {
			n.Invalid = append(n.Invalid, lang.Problem(r.Addr, fmt.Sprintf("lifecycle.dependsOn[%d]", i), "Invalid address", err.Error()))
			continue
		}
		if addr == r.Addr {
			n.Invalid = append(n.Invalid, lang.Problem(r.Addr, fmt.Sprintf("lifecycle.dependsOn[%d]", i), "Self-referential resource", "A resource cannot depend on itself."))
			continue
		}
		depend(addr)
	}
	return n
}
