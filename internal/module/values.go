package module

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
)

// Values evaluates the named values of an expansion: each at most once, and only those that are asked for. It is not
// safe for concurrent use.
type Values struct {
	x      *Expansion
	known  Known
	budget *lang.Budget
	memo   map[lang.Address]*named
	// repeated are the evaluated for_each expressions in their modules; see each.
	repeated map[repeatedIn]*named
	// path are the values that are being evaluated; each needs the next.
	path  []lang.Address
	diags diag.Diagnostics
	// expanding expands modules while their instances are not known; nil afterwards. full is true if the expansion has
	// exceeded a limit.
	expanding *expander
	full      bool
}

// named is an evaluated named value.
type named struct {
	value cty.Value
	// needs are the objects outside that were asked for.
	needs map[lang.Address]bool
	// inputs are the inputs of the root module on which the value depends.
	inputs map[string]bool
	// ok is false if the module does not declare the value.
	ok bool
}

// Values returns an evaluator of the named values of the expansion. known returns the values of objects outside of the
// expansion, and of the resources in it; a value that it does not have is unknown.
func (x *Expansion) Values(known Known) *Values { return newValues(x, known) }

func newValues(x *Expansion, known Known) *Values {
	return &Values{x: x, known: known, budget: x.inputs.Budget, memo: map[lang.Address]*named{},
		repeated: map[repeatedIn]*named{}}
}

// Within makes a budget bound the evaluations, in place of that of the expansion.
func (v *Values) Within(b *lang.Budget) *Values {
	v.budget = b
	return v
}

// repeatedIn is a for_each expression in an instance of a module.
type repeatedIn struct {
	module  *Instance
	forEach *Expr
}

// Instance returns the key and the value of the i-th instance of a block; nil if the block has neither count nor
// for_each. Unlike that of Set.Instance, the value is the one that these Values know.
func (v *Values) Instance(s *Set, i int) *lang.Instance {
	each, _ := v.each(s.Instance(i), s.Module, s.ForEach, s.from)
	return each
}

// each returns the key of an instance with the value that for_each has now, and what the value comes from. The keys are
// those of the expansion.
func (v *Values) each(of *lang.Instance, i *Instance, forEach *Expr, from *named) (*lang.Instance, *named) {
	if of == nil || forEach == nil || v.expanding != nil || len(from.needs) == 0 {
		return of, from
	}
	in := repeatedIn{i, forEach}
	n := v.repeated[in]
	if n == nil {
		n = v.expression(forEach, i, nil)
		v.repeated[in] = n
	}
	out := *of
	out.Value = elementOf(n.value, of.Key.Name)
	return &out, n
}

// elementOf returns the element of a for_each with a key; an unknown value if it is not known.
func elementOf(v cty.Value, key string) cty.Value {
	v, marks := v.Unmark()
	ty := v.Type()
	switch {
	case ty.IsSetType():
		return cty.StringVal(key).WithMarks(marks)
	case v.IsNull() || !v.IsKnown():
	case ty.IsObjectType() && ty.HasAttribute(key):
		return v.GetAttr(key).WithMarks(marks)
	case ty.IsMapType() && v.HasIndex(cty.StringVal(key)).True():
		return v.Index(cty.StringVal(key)).WithMarks(marks)
	}
	return cty.DynamicVal.WithMarks(marks)
}

// Value returns the value of an address: a named value of the expansion, or an object. ok is false if a module does not
// have such a value. A value that depends on an error is unknown; see Diagnostics.
func (v *Values) Value(a lang.Address) (cty.Value, bool) {
	n := v.named(a)
	return n.value, n.ok
}

// Variables evaluates all variables of the instances that the expansion has not adopted, so that Diagnostics has their
// errors and failed validations.
func (v *Values) Variables() {
	for _, i := range v.x.Instances {
		if i.Adopted {
			continue
		}
		for name := range i.Config.Variables {
			v.named(lang.Address{Module: i.Path, Mode: lang.ModeVariable, Name: name})
		}
	}
}

// Diagnostics returns the errors and warnings of all values that were evaluated, with positions in files.
func (v *Values) Diagnostics() diag.Diagnostics { return sorted(v.diags) }

func (v *Values) named(a lang.Address) *named {
	if n := v.memo[a]; n != nil {
		return n
	}
	if v.x.outside(a) {
		n := &named{value: cty.DynamicVal, needs: map[lang.Address]bool{a: true}, ok: true}
		if found, ok := v.object(a); ok && found != cty.NilVal {
			n.value = found
		}
		v.memo[a] = n
		return n
	}
	if at := slices.Index(v.path, a); at >= 0 {
		return v.cycle(v.path[at:])
	}
	v.path = append(v.path, a)
	n := v.evaluateNamed(a)
	v.path = v.path[:len(v.path)-1]
	if v.memo[a] == nil { // a cycle has a value already
		v.memo[a] = n
	}
	return v.memo[a]
}

// outside reports whether an address is not that of a named value of the expansion: an object, or an output of another
// Module.
func (x *Expansion) outside(a lang.Address) bool {
	return !a.Named() || a.Namespace != "" || v1alpha1.RootModule(a.Module) != x.inputs.Name
}

// object returns the value of an object. That of a block with count or for_each has the instances that the expansion
// determines, whose values need not be known.
func (v *Values) object(a lang.Address) (cty.Value, bool) {
	s := v.setAt(a)
	if s == nil || s.Repeats == "" || s.Waiting != nil {
		return v.known(a)
	}
	member := func(i int) cty.Value {
		if found, ok := v.known(s.AddressOf(i)); ok && found != cty.NilVal {
			return found
		}
		return cty.DynamicVal
	}
	if s.Repeats == lang.RepeatCount {
		items := make([]cty.Value, s.Len())
		for i := range items {
			items[i] = member(i)
		}
		return cty.TupleVal(items), true
	}
	members := make(map[string]cty.Value, s.Len())
	for i, key := range s.keys {
		members[key] = member(i)
	}
	return cty.ObjectVal(members), true
}

// setAt returns the block of the expansion with an address without a key; nil if there is none.
func (v *Values) setAt(a lang.Address) *Set {
	if a.Namespace != "" || a.Module == "" {
		return nil
	}
	i := v.instance(a.Module)
	id := BlockID{a.Mode, a.Type, a.Name}
	if i == nil || i.Config.Blocks[id] == nil {
		return nil
	}
	if v.expanding == nil || slices.Contains(v.path, a) {
		return i.sets[id]
	}
	v.path = append(v.path, a)
	defer func() { v.path = v.path[:len(v.path)-1] }()
	return v.expanding.set(i, id)
}

// cycle reports values that depend on each other.
func (v *Values) cycle(of []lang.Address) *named {
	names := make([]string, 0, len(of)+1)
	for _, a := range of {
		names = append(names, a.String())
	}
	names = append(names, of[0].String())
	at := ""
	if i := v.x.byPath[of[0].Module]; i != nil {
		at = i.Config.placeOf(of[0])
	}
	v.diags = append(v.diags, diag.Errorf(at, "Cycle",
		"These values depend on each other: %s. Remove one of the references.", strings.Join(names, ", ")))
	n := &named{value: cty.DynamicVal, ok: true}
	for _, a := range of {
		v.memo[a] = n
	}
	return n
}

// placeOf returns the position of the declaration of a named value.
func (c *Config) placeOf(a lang.Address) string {
	switch a.Mode {
	case lang.ModeVariable:
		if d := c.Variables[a.Name]; d != nil {
			return placeOf(d.Range)
		}
	case lang.ModeLocal:
		if d := c.Locals[a.Name]; d != nil {
			return placeOf(d.Range)
		}
	case lang.ModeOutput:
		if d := c.Outputs[a.Name]; d != nil {
			return placeOf(d.Range)
		}
	}
	return ""
}

func (v *Values) evaluateNamed(a lang.Address) *named {
	missing := &named{value: cty.DynamicVal}
	i := v.instance(a.Module)
	if i == nil {
		return missing
	}
	switch a.Mode {
	case lang.ModePath:
		dirs := map[string]string{"module": i.Config.Dir, "root": ".", "cwd": "."}
		return constantValue(cty.StringVal(dirs[a.Name]))
	case lang.ModeTerraform:
		if a.Name == "workspace" {
			return constantValue(cty.StringVal(cmp.Or(v.x.inputs.Workspace, "default")))
		}
		return constantValue(cty.UnknownVal(cty.Bool).Mark(lang.Ephemeral))
	case lang.ModeVariable:
		if d := i.Config.Variables[a.Name]; d != nil {
			return v.variable(i, d)
		}
	case lang.ModeLocal:
		if d := i.Config.Locals[a.Name]; d != nil {
			return v.expression(d, i, nil)
		}
	case lang.ModeOutput:
		if d := i.Config.Outputs[a.Name]; d != nil {
			return v.output(i, d)
		}
	case lang.ModeModule:
		return v.called(i, a)
	}
	return missing
}

func constantValue(v cty.Value) *named { return &named{value: v, ok: true} }

// instance returns the instance of a module with a path. While the modules are being expanded, it expands those that
// lead to the path.
func (v *Values) instance(path string) *Instance {
	if i := v.x.byPath[path]; i != nil || v.expanding == nil {
		return i
	}
	caller, call, _ := v1alpha1.LastCall(path)
	if parent := v.instance(caller); caller != "" && parent != nil && parent.Config.Calls[call] != nil {
		v.expanding.called(parent, call)
	}
	return v.x.byPath[path]
}

// expression evaluates an expression as a named value.
func (v *Values) expression(e *Expr, i *Instance, each *lang.Instance) *named {
	n, diags := v.evaluateTracked(e, i, each)
	v.diags = append(v.diags, diags...)
	return n
}

// evaluate evaluates an expression in an instance of a module. needs are the objects outside on which the value
// depends, sorted. The diagnostics have positions in files.
func (v *Values) evaluate(e *Expr, i *Instance,
	each *lang.Instance) (value cty.Value, needs []lang.Address, diags diag.Diagnostics) {
	n, diags := v.evaluateTracked(e, i, each)
	return n.value, slices.SortedFunc(maps.Keys(n.needs), lang.Address.Compare), diags
}

// use notes that a value depends on another one.
func (n *named) use(other *named) {
	if len(other.needs) > 0 && n.needs == nil {
		n.needs = make(map[lang.Address]bool, len(other.needs))
	}
	if len(other.inputs) > 0 && n.inputs == nil {
		n.inputs = make(map[string]bool, len(other.inputs))
	}
	maps.Copy(n.needs, other.needs)
	maps.Copy(n.inputs, other.inputs)
}

func (v *Values) evaluateTracked(e *Expr, i *Instance, each *lang.Instance) (*named, diag.Diagnostics) {
	out := &named{ok: true}
	if e.constant != cty.NilVal {
		out.value = e.constant
		return out, nil
	}
	path := ""
	if i != nil {
		path = i.Path
	}
	at := lang.EvaluationContext{Module: path, Instance: each, Functions: v.x.functions, Budget: v.budget}
	value, diags := e.parsed.With(at).Evaluate(func(a lang.Address) (cty.Value, bool) {
		n := v.named(a)
		out.use(n)
		return n.value, n.ok
	}, cty.NilVal)
	if diag.HasErrors(diags) {
		value = cty.DynamicVal
	}
	out.value = value
	return out, e.of.Located(diags, e.Range)
}

// variable evaluates the argument for a variable, or takes its default.
func (v *Values) variable(i *Instance, d *Variable) *named {
	argument, caller, each := v.x.arguments[d.Name], (*Instance)(nil), (*lang.Instance)(nil)
	if i.Parent != nil {
		argument, caller = i.Call.Arguments[d.Name], i.Parent
		each, _ = v.each(i.each, i.Parent, i.Call.ForEach, i.from)
	}
	n := &named{value: d.Default, ok: true}
	if argument != nil {
		n = v.expression(argument, caller, each)
	}
	if i.Parent == nil {
		n.use(&named{inputs: map[string]bool{d.Name: true}})
	}
	if n.value == cty.NilVal {
		n.value = cty.UnknownVal(d.Type) // the loader has reported it
		return n
	}
	if bare, _ := n.value.Unmark(); bare.IsKnown() && bare.IsNull() && !d.Nullable {
		if d.Default == cty.NilVal {
			v.diags = append(v.diags, d.unsuitable(argument, "required variable may not be set to null"))
			n.value = cty.UnknownVal(d.Type)
			return n
		}
		n.value = d.Default
	}
	converted, err := d.convert(n.value)
	if err != nil {
		v.diags = append(v.diags, d.unsuitable(argument, describe(err)))
		converted = cty.UnknownVal(d.Type)
	}
	n.value = converted
	if !d.Ephemeral && holds(n.value, lang.Ephemeral) {
		v.diags = append(v.diags, d.problem(argument, "Ephemeral value not allowed",
			"The input variable %q does not accept ephemeral values: they are not in a plan. Declare it with ephemeral = true, or use ephemeralasnull.", d.Name))
		n.value = cty.UnknownVal(d.Type)
	}
	if d.Sensitive {
		n.value = n.value.Mark(lang.Sensitive)
	}
	if d.Ephemeral {
		n.value = n.value.Mark(lang.Ephemeral)
	}
	if len(d.Validations) > 0 {
		// a validation refers to the variable itself
		v.memo[lang.Address{Module: i.Path, Mode: lang.ModeVariable, Name: d.Name}] = n
		v.assert(n, d.Validations, i, "Invalid value for variable")
	}
	return n
}

func (d *Variable) unsuitable(argument *Expr, why string) v1alpha1.Diagnostic {
	return d.problem(argument, "Invalid value for input variable",
		"The given value is not suitable for var.%s defined at %s: %s.", d.Name, placeOf(d.Range), why)
}

func (d *Variable) problem(argument *Expr, summary, format string, args ...any) v1alpha1.Diagnostic {
	if argument == nil {
		return diag.Errorf(placeOf(d.Range), summary, format, args...)
	}
	return argument.problem(summary, format, args...)
}

// assert evaluates the conditions of a value, and reports those that are false. It returns those whose value is not
// known.
func (v *Values) assert(of *named, conditions []Condition, i *Instance, summary string) (unknown []Condition) {
	for _, c := range conditions {
		result, diags := v.evaluateTracked(c.Condition, i, nil)
		of.use(result)
		v.diags = append(v.diags, diags...)
		ok, _ := result.value.Unmark()
		switch {
		case diag.HasErrors(diags):
			continue
		case !ok.IsKnown():
			unknown = append(unknown, c)
			continue
		case ok.Type() != cty.Bool || ok.True():
			continue
		}
		evaluated, diags := v.evaluateTracked(c.Message, i, nil)
		v.diags = append(v.diags, diags...)
		message := evaluated.value
		text := "The error message refers to values that are not known or are sensitive, so it is not shown."
		if !message.ContainsMarked() && message.IsKnown() && message.Type() == cty.String && !message.IsNull() {
			text = message.AsString()
		}
		v.diags = append(v.diags, c.Condition.problem(summary, "%s", text))
	}
	return unknown
}

func (v *Values) output(i *Instance, d *Output) *named {
	n := v.expression(d.Value, i, nil)
	v.assert(n, d.Preconditions, i, "Module output value precondition failed")
	switch ephemeral := holds(n.value, lang.Ephemeral); {
	case ephemeral && !d.Ephemeral:
		v.diags = append(v.diags, d.Value.problem("Ephemeral value not allowed",
			"The output %q is not declared as returning an ephemeral value, so it cannot be set to a result derived from one. Declare it with ephemeral = true, or use ephemeralasnull.", d.Name))
		n.value = cty.DynamicVal
	case i.Parent == nil && d.Ephemeral:
		v.diags = append(v.diags, d.Value.problem("Ephemeral output not allowed",
			"The root module's output %q cannot be ephemeral, because Hykube stores it.", d.Name))
		n.value = cty.DynamicVal
	case i.Parent == nil && !d.Sensitive && holds(n.value, lang.Sensitive):
		v.diags = append(v.diags, d.Value.problem("Output refers to sensitive values",
			"To reduce the risk of accidentally exporting sensitive data that was intended to be only internal, any root module output containing sensitive data must be explicitly marked as sensitive, to confirm your intent: set sensitive = true for the output %q.", d.Name))
	}
	if d.Sensitive {
		n.value = n.value.Mark(lang.Sensitive)
	}
	if d.Ephemeral {
		n.value = n.value.Mark(lang.Ephemeral)
	}
	return n
}

// holds reports whether a value, or a value within it, has a mark.
func holds(v cty.Value, mark any) bool {
	if !v.ContainsMarked() {
		return false
	}
	_, marks := v.UnmarkDeep()
	_, held := marks[mark]
	return held
}

// called returns the value of a call, or of one instance of it.
func (v *Values) called(i *Instance, a lang.Address) *named {
	call, key, one := a.Set()
	if i.Config.Calls[call.Name] == nil {
		return &named{value: cty.DynamicVal}
	}
	var r *repeated
	if v.expanding != nil {
		r = v.expanding.called(i, call.Name)
	} else if r = i.calls[call.Name]; r == nil {
		return &named{value: cty.DynamicVal, ok: true}
	}
	if r.Waiting != nil || diag.HasErrors(r.problem) {
		n := &named{value: cty.DynamicVal, needs: map[lang.Address]bool{}, ok: true}
		if r.Waiting != nil {
			for _, need := range r.Waiting.Needs {
				n.needs[need] = true
			}
		}
		return n
	}
	n := &named{ok: true}
	if one {
		child := v.x.byPath[v1alpha1.ModulePath(i.Path, call.Name, &key)]
		if child == nil {
			return &named{value: cty.DynamicVal}
		}
		n.value = v.outputs(child, n)
		return n
	}
	switch r.Repeats {
	case lang.RepeatForEach:
		members := make(map[string]cty.Value, len(r.instances))
		for k, child := range r.instances {
			members[r.keys[k]] = v.outputs(child, n)
		}
		n.value = cty.ObjectVal(members)
	case lang.RepeatCount:
		items := make([]cty.Value, len(r.instances))
		for k, child := range r.instances {
			items[k] = v.outputs(child, n)
		}
		n.value = cty.TupleVal(items)
	default:
		n.value = cty.NullVal(cty.DynamicPseudoType) // not enabled
		if len(r.instances) > 0 {
			n.value = v.outputs(r.instances[0], n)
		}
	}
	return n
}

// outputs returns the object of an instance's outputs.
func (v *Values) outputs(i *Instance, of *named) cty.Value {
	members := make(map[string]cty.Value, len(i.Config.Outputs))
	for name := range i.Config.Outputs {
		n := v.named(lang.Address{Module: i.Path, Mode: lang.ModeOutput, Name: name})
		of.use(n)
		members[name] = n.value
	}
	return cty.ObjectVal(members)
}

// String is for messages of tests.
func (n *named) String() string { return fmt.Sprintf("%#v", n.value) }
