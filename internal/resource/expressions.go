package resource

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
)

// Expressions are those of a resource's spec and lifecycle, parsed, and the addresses that they refer to. Those who share a resource
// share them, and do not change them.
type Expressions struct {
	// Config is the spec. ConfigDiagnostics are its errors and warnings.
	Config            *lang.Config
	ConfigDiagnostics diag.Diagnostics
	// LifecycleExpressions are the conditions, their messages, and the ID or the identity of an import.
	LifecycleExpressions []*lang.Expression
	// References are those of all expressions. DependsOn are the addresses in this namespace that they and lifecycle.dependsOn name.
	References []lang.Reference
	DependsOn  []lang.Address
	// External is true when expressions refer to an object that no plan of this namespace changes, such as a ConfigMap.
	External bool
	// Impure is true when expressions may give another value each time: they read the clock, for example.
	Impure bool
	// Invalid are all errors and warnings, with the address of the resource.
	Invalid diag.Diagnostics

	preconditions, postconditions parsed[*check]
	triggers, imports             parsed[*lang.Expression]
}

// parsed are parts of a lifecycle, with the errors of their parsing.
type parsed[T any] struct {
	list  []T
	diags diag.Diagnostics
}

// failure is nil when the parts have no errors.
func (p *parsed[T]) failure(operation string) error {
	if !diag.HasErrors(p.diags) {
		return nil
	}
	return &diag.Failure{Operation: operation, Diagnostics: slices.Clone(p.diags)}
}

// parseOnce holds the expressions of a resource from the first time that they are asked for.
type parseOnce struct {
	sync.Once
	Expressions
}

// Parse returns the expressions of the spec and of the lifecycle, with their errors. The first call parses them. Functions of providers are
// known by their signatures alone; Config.With brings those that can be called.
func (r *Resource) Parse() *Expressions {
	r.expressions.Do(func() { r.expressions.Expressions = r.parse() })
	return &r.expressions.Expressions
}

func (r *Resource) parse() Expressions {
	var n Expressions
	functions := r.catalog.Signatures()
	options := lang.ExpressionOptions{Functions: functions, Namespace: r.Ref.Namespace}
	n.Config, n.ConfigDiagnostics = lang.ConfigOptions{
		Functions: functions, Namespace: r.Ref.Namespace, Ephemeral: r.Mode == v1alpha1.ModeEphemeral,
	}.Parse(r.Spec(), r.Schema.Block)
	n.Impure = n.Config.Impure()
	n.preconditions, n.postconditions = r.parseChecks(Preconditions, options), r.parseChecks(Postconditions, options)
	n.triggers, n.imports = r.parseTriggers(), r.parseImport(options)
	diags := slices.Concat(n.ConfigDiagnostics, n.preconditions.diags, n.postconditions.diags, n.triggers.diags, n.imports.diags)

	n.References = slices.Clone(n.Config.References())
	for _, c := range slices.Concat(n.preconditions.list, n.postconditions.list) {
		n.References = append(n.References, c.references()...)
		n.LifecycleExpressions = append(n.LifecycleExpressions, c.condition, c.message)
	}
	for _, t := range n.triggers.list {
		for _, ref := range t.References() {
			ref.Field, _, _ = strings.Cut(ref.Field, ", ") // the column counts the "${" that the parser was given, and the author did not write
			n.References = append(n.References, ref)
		}
	}
	for _, e := range n.imports.list {
		n.References = append(n.References, e.References()...)
		n.LifecycleExpressions = append(n.LifecycleExpressions, e)
	}
	n.Invalid = append(lang.WithAddress(diags, r.Address), n.resolveDependencies(r)...)
	n.DependsOn = slices.Clip(n.DependsOn)
	return n
}

// resolveDependencies finds the resources that the expressions and lifecycle.dependsOn name, and returns what is wrong with those.
func (n *Expressions) resolveDependencies(r *Resource) diag.Diagnostics {
	var diags diag.Diagnostics
	seen := map[lang.Address]bool{}
	depend := func(addr lang.Address) {
		switch {
		case addr.Namespace != "" || addr.Type == lang.TypeConfigMap || addr.Type == lang.TypeSecret:
			n.External = true
		case addr == r.Address:
			if !seen[addr] {
				diags = append(diags, lang.Problem(r.Address, "", "Self-referential resource",
					fmt.Sprintf("%s refers to itself, and cannot know its own values before it is planned. Remove the reference; a postcondition can speak of self.", r.Address)))
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
	slices.SortFunc(n.DependsOn, lang.Address.Compare)
	for i, s := range r.Lifecycle.DependsOn {
		addr, err := lang.ParseAddress(s)
		switch {
		case err != nil:
			diags = append(diags, lang.Problem(r.Address, fmt.Sprintf("lifecycle.dependsOn[%d]", i), "Invalid address", err.Error()))
		case addr == r.Address:
			diags = append(diags, lang.Problem(r.Address, fmt.Sprintf("lifecycle.dependsOn[%d]", i), "Self-referential resource", "A resource cannot depend on itself."))
		default:
			depend(addr)
		}
	}
	return diags
}
