package module

import (
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/hykube/hykube/internal/lang"
)

// This file follows references through named values without evaluating them.

// Dependencies finds the objects on which instances of blocks depend. It is not safe for concurrent use.
type Dependencies struct {
	x *Expansion
	// known has the objects behind the parts of named values that were followed already.
	known map[namedPart]map[lang.Address]bool
}

// namedPart is a named value, or an attribute of it.
type namedPart struct {
	lang.Address
	attribute string
}

// Dependencies returns the Dependencies of an expansion.
func (x *Expansion) Dependencies() *Dependencies {
	return &Dependencies{x: x, known: map[namedPart]map[lang.Address]bool{}}
}

// Of returns the addresses of the objects on which the i-th instance of a block depends, by references or by
// depends_on, sorted. An address of lang.ModeModule stands for all that is in that module.
func (d *Dependencies) Of(s *Set, i int) []lang.Address {
	out := d.repeated(s)
	d.follow(out, s.references(i))
	for _, a := range s.DependsOn() {
		out[a] = true
	}
	return slices.SortedFunc(maps.Keys(out), lang.Address.Compare)
}

// Through returns the addresses of the objects on which the i-th instance of a block depends through named values, and
// through count or for_each, sorted.
func (d *Dependencies) Through(s *Set, i int) []lang.Address {
	out := d.repeated(s)
	refs := slices.DeleteFunc(s.references(i), func(r lang.Reference) bool { return !r.Named() })
	d.follow(out, refs)
	return slices.SortedFunc(maps.Keys(out), lang.Address.Compare)
}

// Repeats returns the addresses of the objects to which count or for_each of a block refers itself, without those
// behind named values.
func (d *Dependencies) Repeats(s *Set) []lang.Address {
	out := map[lang.Address]bool{}
	for _, e := range []*Expr{s.Count, s.ForEach, s.Enabled} {
		if e == nil || e.parsed == nil {
			continue
		}
		for _, r := range e.parsed.With(lang.EvaluationContext{Module: s.Module.Path}).References() {
			if d.x.outside(r.Address) {
				out[r.Address] = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(out), lang.Address.Compare)
}

// Output returns the addresses of what an output of the root module depends on, sorted.
func (d *Dependencies) Output(name string) []lang.Address {
	out := maps.Clone(d.named(namedPart{lang.Address{Module: d.x.Root.Path, Mode: lang.ModeOutput, Name: name}, ""}))
	for _, c := range d.x.Root.Config.Outputs[name].Preconditions {
		d.expression(out, c.Condition, d.x.Root, nil)
		d.expression(out, c.Message, d.x.Root, nil)
	}
	return slices.SortedFunc(maps.Keys(out), lang.Address.Compare)
}

// repeated returns the addresses of the objects that determine the instances of a block.
func (d *Dependencies) repeated(s *Set) map[lang.Address]bool {
	out := map[lang.Address]bool{}
	for _, e := range []*Expr{s.Count, s.ForEach, s.Enabled} {
		d.expression(out, e, s.Module, nil)
	}
	return out
}

// references returns the references of the arguments and the lifecycle of the i-th instance of a block.
func (s *Set) references(i int) []lang.Reference {
	at := lang.EvaluationContext{Module: s.Module.Path, Instance: s.Instance(i)}
	l := &s.Lifecycle
	refs := slices.Clone(s.spec.With(at).References())
	expressions := append([]*Expr{l.PreventDestroy, l.Destroy}, l.ReplaceTriggeredBy...)
	for _, c := range slices.Concat(l.Preconditions, l.Postconditions) {
		expressions = append(expressions, c.Condition, c.Message)
	}
	for _, e := range expressions {
		if e != nil && e.parsed != nil {
			refs = append(refs, e.parsed.With(at).References()...)
		}
	}
	return refs
}

// expression adds what an expression in a module instance depends on.
func (d *Dependencies) expression(out map[lang.Address]bool, e *Expr, i *Instance, each *lang.Instance) {
	if e == nil || e.parsed == nil {
		return
	}
	at := lang.EvaluationContext{Instance: each}
	if i != nil {
		at.Module = i.Path
	}
	d.follow(out, e.parsed.With(at).References())
}

func (d *Dependencies) follow(out map[lang.Address]bool, refs []lang.Reference) {
	for _, r := range refs {
		if d.x.outside(r.Address) {
			out[r.Address] = true
			continue
		}
		maps.Copy(out, d.named(namedPart{r.Address, r.Attribute}))
	}
}

// named returns the objects behind a named value, or behind an attribute of it.
func (d *Dependencies) named(p namedPart) map[lang.Address]bool {
	if known, ok := d.known[p]; ok {
		return known
	}
	out := map[lang.Address]bool{}
	d.known[p] = out // also ends a cycle, which the expansion reports
	i := d.x.byPath[p.Module]
	if i == nil {
		if w := d.x.Waits(p.Called()); w != nil && p.Mode == lang.ModeOutput {
			out[w.Address] = true
		}
		return out
	}
	switch p.Mode {
	case lang.ModeVariable:
		if i.Parent == nil {
			d.part(out, d.x.arguments[p.Name], p.attribute, nil, nil)
			break
		}
		argument := i.Call.Arguments[p.Name]
		d.part(out, argument, p.attribute, i.Parent, i.each)
		if argument != nil && argument.parsed.UsesKey() {
			d.expression(out, i.Call.ForEach, i.Parent, nil)
		}
	case lang.ModeLocal:
		d.part(out, i.Config.Locals[p.Name], p.attribute, i, nil)
	case lang.ModeOutput:
		if o := i.Config.Outputs[p.Name]; o != nil {
			d.part(out, o.Value, p.attribute, i, nil)
			for _, a := range absolute(o.DependsOn, i) {
				out[a] = true
			}
		}
	case lang.ModeModule:
		d.call(out, i, p.Address)
	}
	return out
}

// call adds what the outputs of a call depend on, and what determines its instances.
func (d *Dependencies) call(out map[lang.Address]bool, i *Instance, a lang.Address) {
	set, _, one := a.Set()
	r, call := i.calls[set.Name], i.Config.Calls[set.Name]
	if r == nil || call == nil {
		return
	}
	d.expression(out, call.Count, i, nil)
	d.expression(out, call.ForEach, i, nil)
	if r.Waiting != nil {
		out[r.Waiting.Address] = true
	}
	for _, child := range r.instances {
		if one && (lang.Address{Module: child.Path, Mode: lang.ModeOutput}).Called() != a {
			continue
		}
		for name := range child.Config.Outputs {
			maps.Copy(out, d.named(namedPart{lang.Address{Module: child.Path, Mode: lang.ModeOutput, Name: name}, ""}))
		}
	}
}

// part adds what an expression depends on, or the attribute of the object that it makes.
func (d *Dependencies) part(out map[lang.Address]bool, e *Expr, attribute string, i *Instance, each *lang.Instance) {
	if e == nil {
		return
	}
	if member := e.members[attribute]; member != nil {
		d.expression(out, member, i, each)
		return
	}
	d.expression(out, e, i, each)
}

// membersOf returns the expressions of an object with literal keys, by the keys. It returns nil for other expressions.
func membersOf(e *Expr) map[string]*Expr {
	out := map[string]*Expr{}
	switch v := e.Value.(type) {
	case map[string]any:
		for name, member := range v {
			if _, constant := lang.Constant(name); !constant {
				return nil
			}
			out[name] = &Expr{Value: member, Field: e.Field, of: e.of, Range: e.Range}
		}
	case string:
		parsed, diags := hclsyntax.ParseTemplate([]byte(v), "", hcl.InitialPos)
		wrap, ok := parsed.(*hclsyntax.TemplateWrapExpr)
		if diags.HasErrors() || !ok {
			return nil
		}
		object, ok := wrap.Wrapped.(*hclsyntax.ObjectConsExpr)
		if !ok {
			return nil
		}
		for _, item := range object.Items {
			key, diags := item.KeyExpr.Value(nil)
			if diags.HasErrors() || key.IsNull() {
				return nil
			}
			text := string(item.ValueExpr.Range().SliceBytes([]byte(v)))
			out[key.AsString()] = &Expr{Value: "${" + text + "\n}", Field: e.Field, of: e.of, Range: e.Range}
		}
	}
	return out
}
