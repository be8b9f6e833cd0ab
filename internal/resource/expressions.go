package resource

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/module"
	"github.com/hykube/hykube/internal/resourceset"
)

// Expressions holds the parsed expressions of a resource's spec and lifecycle, and the addresses that they refer to.
// All copies of a resource share it and must not change it.
type Expressions struct {
	// Config is the parsed spec. ConfigDiagnostics are its errors and warnings.
	Config            *lang.Config
	ConfigDiagnostics diag.Diagnostics
	// LifecycleExpressions are the conditions, their messages, and the ID or identity of an import.
	LifecycleExpressions []*lang.Expression
	// References are the references of all expressions. DependsOn lists the addresses in this namespace in the
	// references and in lifecycle.dependsOn.
	References []lang.Reference
	DependsOn  []lang.Address
	// External is true if an expression refers to an object that plans of this namespace do not change, such as a
	// ConfigMap, or to an output of a Module, which may be more than the resources behind it.
	External bool
	// Impure is true if an expression may have another value in each evaluation, such as the time.
	Impure bool
	// Invalid lists all errors and warnings, with the address of the resource.
	Invalid diag.Diagnostics

	// direct lists, for a resource of a Module, the addresses to which it refers itself; see Names.
	direct []lang.Address

	preconditions, postconditions parsed[*check]
	triggers, imports             parsed[*lang.Expression]
}

// parsed holds the parsed entries of one lifecycle field, with their parse errors.
type parsed[T any] struct {
	list  []T
	diags diag.Diagnostics
}

// failure returns the parse errors as a *diag.Failure, or nil without errors.
func (p *parsed[T]) failure(operation string) error {
	if !diag.HasErrors(p.diags) {
		return nil
	}
	return &diag.Failure{Operation: operation, Diagnostics: slices.Clone(p.diags)}
}

// parseOnce caches the expressions of a resource.
type parseOnce struct {
	sync.Once
	Expressions
}

// Parse returns the expressions of the spec and the lifecycle, with their errors. The first call parses them.
// Provider-defined functions have signatures only; Config.With supplies callable ones.
func (r *Resource) Parse() *Expressions {
	r.expressions.Do(func() {
		if id := resourceset.TemplateOf(r.Object); (r.Instance != nil || r.Address.Module != "") && id != "" {
			shared := r.catalog.ParsedTemplate(catalog.TemplateKey{Template: id, Schema: r.Schema},
				func() any { return new(parseOnce) }).(*parseOnce)
			shared.Do(func() { shared.Expressions = r.parseTemplate() })
			r.expressions.Expressions = shared.instance(r)
			return
		}
		r.expressions.Expressions = r.parse()
	})
	return &r.expressions.Expressions
}

func (r *Resource) parse() Expressions {
	n := r.parseTemplate()
	n.list(r)
	return n
}

// parseTemplate parses the expressions. It omits the parts that differ between the instances of a ResourceSet. list and
// instance add them.
func (r *Resource) parseTemplate() Expressions {
	var n Expressions
	functions := r.catalog.Signatures()
	in := resourceset.ModuleOf(r.Object)
	if in != "" {
		functions = maps.Clone(functions)
		maps.Copy(functions, fileSignatures())
	}
	options := lang.ExpressionOptions{Functions: functions, Namespace: r.Ref.Namespace, Module: in,
		Repetition: r.repetition()}
	n.Config, n.ConfigDiagnostics = lang.ConfigOptions{
		Functions: functions, Namespace: r.Ref.Namespace, Module: in, Ephemeral: r.Mode == v1alpha1.ModeEphemeral,
		Repetition: r.repetition(),
	}.Parse(r.Spec(), r.Schema.Block)
	n.Impure = n.Config.Impure()
	n.preconditions, n.postconditions = r.parseChecks(Preconditions, options), r.parseChecks(Postconditions, options)
	n.triggers, n.imports = r.parseTriggers(), r.parseImport(options)
	return n
}

// fileSignatures are the functions that read the files of a Module.
var fileSignatures = sync.OnceValue(module.FileSignatures)

// list lists the references and the errors of all expressions.
func (n *Expressions) list(r *Resource) {
	diags := slices.Concat(n.ConfigDiagnostics, n.preconditions.diags, n.postconditions.diags, n.triggers.diags,
		n.imports.diags)

	n.References = slices.Clone(n.Config.References())
	for _, c := range slices.Concat(n.preconditions.list, n.postconditions.list) {
		n.References = append(n.References, c.references()...)
		n.LifecycleExpressions = append(n.LifecycleExpressions, c.condition, c.message)
	}
	for _, t := range n.triggers.list {
		for _, ref := range t.References() {
			// the parser's column includes a "${" that the user did not write
			ref.Field, _, _ = strings.Cut(ref.Field, ", ")
			n.References = append(n.References, ref)
		}
	}
	for _, e := range n.imports.list {
		n.References = append(n.References, e.References()...)
		n.LifecycleExpressions = append(n.LifecycleExpressions, e)
	}
	n.followNamed(r)
	n.Invalid = append(lang.WithAddress(diags, r.Address), n.resolveDependencies(r)...)
	n.DependsOn = slices.Clip(n.DependsOn)
}

// followNamed replaces the references of a block in a module to named values by references to the objects behind them.
func (n *Expressions) followNamed(r *Resource) {
	if r.Address.Module == "" {
		return
	}
	// an instance cannot refer to other Modules directly
	n.References = slices.DeleteFunc(n.References, func(ref lang.Reference) bool { return ref.Named() })
	through, repeats := resourceset.Through(r.Object)
	n.direct = slices.Clone(repeats)
	for _, ref := range n.References {
		n.direct = append(n.direct, ref.Address)
	}
	for _, a := range through {
		n.References = append(n.References, lang.Reference{Address: a})
	}
}

// Names reports whether an object depends on another one by a reference or by dependsOn of its own, and not only
// through named values of its Module.
func (r *Resource) Names(a lang.Address) bool {
	if r.Address.Module == "" && a.Module == "" {
		return true
	}
	covers := func(named lang.Address) bool { return named.Covers(a) }
	return slices.ContainsFunc(r.Parse().direct, covers) || slices.ContainsFunc(r.Lifecycle.DependsOn,
		func(s string) bool {
			named, err := lang.ParseAddress(s)
			return err == nil && covers(named)
		})
}

// repetition returns how the ResourceSet of an instance repeats its template; "" for another object.
func (r *Resource) repetition() lang.Repetition {
	switch {
	case r.Instance == nil:
		return ""
	case r.Instance.Key.Named:
		return lang.RepeatForEach
	default:
		return lang.RepeatCount
	}
}

// TriggerReferences lists the references of lifecycle.replaceTriggeredBy.
func (n *Expressions) TriggerReferences() []lang.Reference {
	var refs []lang.Reference
	for _, t := range n.triggers.list {
		refs = append(refs, t.References()...)
	}
	return refs
}

// instance returns the expressions of a template for one instance, with its references.
func (n *Expressions) instance(r *Resource) Expressions {
	at := lang.EvaluationContext{Instance: r.Instance, Module: r.Address.Module}
	own := *n
	own.Config = n.Config.With(at)
	bound := func(list []*check) []*check {
		out := make([]*check, len(list))
		for i, c := range list {
			out[i] = &check{c.field, c.condition.With(at), c.message.With(at)}
		}
		return out
	}
	own.preconditions.list, own.postconditions.list = bound(n.preconditions.list), bound(n.postconditions.list)
	own.triggers.list = make([]*lang.Expression, len(n.triggers.list))
	for i, t := range n.triggers.list {
		own.triggers.list[i] = t.With(at)
	}
	// An import belongs to one instance, and not to the template.
	own.imports = r.parseImport(lang.ExpressionOptions{Namespace: r.Ref.Namespace})
	own.list(r)
	return own
}

// resolveDependencies sets the dependencies of the expressions and of lifecycle.dependsOn. It returns the diagnostics
// about them.
func (n *Expressions) resolveDependencies(r *Resource) diag.Diagnostics {
	var diags diag.Diagnostics
	seen := map[lang.Address]bool{}
	ownSet, _, instance := r.Address.Set()
	ofOwnSet := func(addr lang.Address) bool {
		set, _, _ := addr.Set()
		return instance && set == ownSet
	}
	depend := func(addr lang.Address) {
		switch {
		case addr.Namespace != "" || addr.Stored():
			n.External = true
		case addr == r.Address:
			if !seen[addr] {
				diags = append(diags, lang.Problem(r.Address, "", "Self-referential resource",
					fmt.Sprintf("%s refers to itself, but its own values are not known before it is planned. Remove the reference. Only a postcondition can refer to self.", r.Address)))
			}
			seen[addr] = true
		case ofOwnSet(addr):
			if !seen[ownSet] {
				diags = append(diags, lang.Problem(r.Address, "", "Self-referential block",
					fmt.Sprintf("The template of %s refers to its own ResourceSet, whose values are not known before it is planned. Remove the reference.", ownSet)))
			}
			seen[ownSet] = true
		case !seen[addr]:
			seen[addr] = true
			n.External = n.External || addr.IsModuleOutput()
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
			diags = append(diags, lang.Problem(r.Address, fmt.Sprintf("lifecycle.dependsOn[%d]", i), "Invalid address",
				err.Error()))
		case addr == r.Address:
			diags = append(diags, lang.Problem(r.Address, fmt.Sprintf("lifecycle.dependsOn[%d]", i),
				"Self-referential resource", "A resource cannot depend on itself."))
		default:
			depend(addr)
		}
	}
	return diags
}
