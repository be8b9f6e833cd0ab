package module

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
)

// This file has what moved, removed and import blocks say about the instances of an expansion.

// move is a moved block in a module instance.
type move struct{ from, to lang.Address }

// maxOrigins is the number of earlier addresses of an instance that chains of moved blocks may give.
const maxOrigins = 100

// Origins returns the earlier addresses of an instance of a block, the latest first: those that moved blocks name,
// also in chains, and those without or with count. The infrastructure of the first one that is recorded, and that
// the expansion no longer has, is that of the instance.
func (x *Expansion) Origins(s *Set, i int) []lang.Address {
	own := s.AddressOf(i)
	seen := map[lang.Address]bool{own: true}
	var out []lang.Address
	add := func(a lang.Address) {
		if !seen[a] && len(out) < maxOrigins {
			seen[a] = true
			out = append(out, a)
		}
	}
	for next := 0; next <= len(out); next++ {
		a := own
		if next > 0 {
			a = out[next-1]
		}
		for _, m := range x.moves {
			if from, ok := m.origin(a); ok {
				add(from)
			}
		}
	}
	// As in Terraform, count can be added and removed without a moved block.
	switch each := s.Instance(i); {
	case each == nil:
		add(own.Instance(v1alpha1.InstanceKey{}))
	case s.Repeats == lang.RepeatCount && each.Key.Index == 0:
		add(s.Address())
	}
	return out
}

// listMoves lists the moved blocks of all module instances. A block that moves an instance which is still declared is
// an error.
func (x *Expansion) listMoves() (diags diag.Diagnostics) {
	for _, i := range x.Instances {
		for _, m := range i.Config.Moved {
			next := move{m.From.in(i.Path), m.To.in(i.Path)}
			if x.movesDeclared(next) {
				diags = append(diags, diag.Errorf(placeOf(m.Range), "Moved object still exists", movedExists,
					next.from))
			}
			x.moves = append(x.moves, next)
		}
	}
	return diags
}

const movedExists = "This statement declares a move from %s, but that is still declared. Remove the declaration, or the moved block."

// movesDeclared reports whether the expansion still has what a block moves.
func (x *Expansion) movesDeclared(m move) bool {
	block, _, fromKeyed := m.from.Set()
	_, _, toKeyed := m.to.Set()
	of := x.byPath[m.from.Module]
	switch {
	case of == nil:
		return false
	case m.from.Mode == lang.ModeModule && (fromKeyed || toKeyed):
		return x.byPath[m.from.CalledPath()] != nil
	case m.from.Mode == lang.ModeModule:
		return of.Config.Calls[m.from.Name] != nil
	}
	s := of.sets[BlockID{Mode: block.Mode, Type: block.Type, Name: block.Name}]
	if s == nil || !fromKeyed && !toKeyed {
		return s != nil
	}
	for i := range s.Len() {
		if s.AddressOf(i) == m.from {
			return true
		}
	}
	return false
}

// Undeclares reports whether an address is in a module that the expansion does not have, of a call that still exists,
// with a block that still exists.
func (x *Expansion) Undeclares(a lang.Address) bool {
	if x.byPath[a.Module] != nil {
		return false
	}
	var names []string
	for path := a.Module; path != ""; {
		caller, call, _ := v1alpha1.LastCall(path)
		names, path = append(names, call), caller
	}
	c := x.tree.Root
	for i := len(names) - 2; i >= 0 && c != nil; i-- { // the last one is the name of the Module
		c = c.Children[names[i]]
	}
	block, _, _ := a.Set()
	return c != nil && c.Blocks[BlockID{Mode: block.Mode, Type: block.Type, Name: block.Name}] != nil
}

// origin returns the address from which a block moves an address; ok is false if it does not.
func (m move) origin(a lang.Address) (from lang.Address, ok bool) {
	if m.to.Mode == lang.ModeModule {
		path, ok := m.path(a.Module)
		a.Module = path
		return a, ok
	}
	set, key, keyed := a.Set()
	to, _, toKeyed := m.to.Set()
	_, _, fromKeyed := m.from.Set()
	switch {
	case set != to:
		return from, false
	case toKeyed || fromKeyed || !keyed:
		return m.from, a == m.to
	default: // both are whole blocks, so each instance keeps its key
		return m.from.Instance(key), true
	}
}

// path returns the earlier path of a module instance, given its path.
func (m move) path(path string) (string, bool) {
	from, to := m.from.CalledPath(), m.to.CalledPath()
	rest, ok := strings.CutPrefix(path, to)
	if !ok || rest != "" && rest[0] != '.' && rest[0] != '[' {
		return "", false
	}
	_, _, fromKeyed := m.from.Set()
	_, _, toKeyed := m.to.Set()
	keyed := strings.HasPrefix(rest, "[")
	if keyed && (toKeyed || fromKeyed) {
		return "", false
	}
	return from + rest, true
}

// Forgets reports whether a removed block says that the infrastructure of an address stays when its block is gone.
func (x *Expansion) Forgets(a lang.Address) bool {
	for _, i := range x.Instances {
		for _, r := range i.Config.Removed {
			if !r.Destroy && r.From.in(i.Path).Covers(a) {
				return true
			}
		}
	}
	return false
}

// Importing is an import block for one instance.
type Importing struct {
	To lang.Address
	// ID is NilVal if the block has an identity, and Identity is NilVal if it has an ID.
	ID, Identity cty.Value
	Provider     *ProviderRef
	Range        hcl.Range
}

// Place returns the position of the block.
func (i *Importing) Place() string { return placeOf(i.Range) }

// Imports evaluates the import blocks of the root module.
func (v *Values) Imports() ([]Importing, diag.Diagnostics) {
	var out []Importing
	var diags diag.Diagnostics
	root := v.x.Root
	for _, block := range root.Config.Imports {
		r := repetition{count: 1}
		if block.ForEach != nil {
			var more diag.Diagnostics
			r, more = (&expander{Values: v}).forEach(root, block.ForEach, lang.Address{Module: root.Path})
			diags = append(diags, more...)
			if r.Waiting != nil {
				diags = append(diags, r.Waiting.Problem)
			}
		}
		for i := range r.Len() {
			one, more := v.importing(block, r.Instance(i))
			diags = append(diags, more...)
			if !diag.HasErrors(more) {
				out = append(out, one)
			}
		}
	}
	return out, diags
}

func (v *Values) importing(block *Import, each *lang.Instance) (Importing, diag.Diagnostics) {
	root := v.x.Root
	out := Importing{Provider: block.Provider, Range: block.Range}
	to, diags := v.evaluated(block.To, each)
	if diag.HasErrors(diags) {
		return out, diags
	}
	out.To = to.in(root.Path)
	for _, part := range []struct {
		of *Expr
		to *cty.Value
	}{{block.ID, &out.ID}, {block.Identity, &out.Identity}} {
		if part.of == nil {
			continue
		}
		value, _, more := v.evaluate(part.of, root, each)
		diags = append(diags, more...)
		if !diag.HasErrors(more) && !value.IsWhollyKnown() {
			diags = append(diags, part.of.problem("Invalid import id argument",
				"The import block refers to a value that is known only after apply. Write a value that is known before the plan."))
		}
		*part.to = value
	}
	return out, diags
}

// evaluated returns a target whose keys are constants.
func (v *Values) evaluated(t Target, each *lang.Instance) (Target, diag.Diagnostics) {
	var diags diag.Diagnostics
	fixed := func(e *Expr) *Expr {
		if e == nil || e.instanceKey() != nil {
			return e
		}
		value, _, more := v.evaluate(e, v.x.Root, each)
		diags = append(diags, more...)
		value, marks := value.Unmark()
		if len(marks) > 0 || !value.IsKnown() || value.IsNull() {
			diags = append(diags, e.problem("Invalid index expression",
				"The key of an instance must be known before the plan, and neither null nor sensitive."))
			return e
		}
		if value.Type() != cty.Number {
			text, err := convert.Convert(value, cty.String)
			if err != nil {
				diags = append(diags, e.problem("Invalid index expression",
					"The key of an instance is a number or a string."))
				return e
			}
			value = text
		}
		return &Expr{Value: jsonOf(value), Field: e.Field, Range: e.Range, of: e.of}
	}
	t.Steps = slices.Clone(t.Steps)
	for i := range t.Steps {
		t.Steps[i].Key = fixed(t.Steps[i].Key)
	}
	t.Key = fixed(t.Key)
	return t, diags
}

// HasChecks reports whether a module has a check block.
func (x *Expansion) HasChecks() bool {
	return slices.ContainsFunc(x.Instances, func(i *Instance) bool { return len(i.Config.Checks) > 0 })
}

// Checks evaluates the check blocks of all modules. An assertion that is false, or whose value is not known, is a
// warning, and so is an error in it. Each has the address of its check.
func (v *Values) Checks() diag.Diagnostics {
	outer := v.diags
	var found diag.Diagnostics
	for _, i := range v.x.Instances {
		for _, name := range sortedKeys(i.Config.Checks) {
			v.diags = nil
			for _, c := range v.assert(&named{}, i.Config.Checks[name].Assertions, i, "Check block assertion failed") {
				v.diags = append(v.diags, c.Condition.problem("Check block assertion known after apply",
					"The condition could not be evaluated at this time, a result will be known when this plan is applied."))
			}
			for _, d := range v.diags {
				d.Severity, d.Address = v1alpha1.SeverityWarning, i.Path+".check."+name
				found = append(found, d)
			}
		}
	}
	v.diags = outer
	return found
}

// Outputs returns the outputs of the root module.
func (v *Values) Outputs() map[string]cty.Value {
	out := map[string]cty.Value{}
	for name := range v.x.Root.Config.Outputs {
		out[name], _ = v.Value(lang.Address{Module: v.x.Root.Path, Mode: lang.ModeOutput, Name: name})
	}
	return out
}
