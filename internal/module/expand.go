package module

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
)

// Limits on an expansion.
const (
	// MaxModuleInstances is the number of instances of modules, and MaxInstances that of blocks.
	MaxModuleInstances = 100_000
	MaxInstances       = 1_100_000
	maxKeyBytes        = 253
)

// Inputs are what a Module gives to its root module.
type Inputs struct {
	// Name is the name of the Module, with which the paths of its instances begin.
	Name string
	// Values are the values of the root module's variables, as JSON with templates of the language of specs.
	Values map[string]any
	// Workspace is the value of terraform.workspace; empty means default.
	Workspace string
	// Functions are the functions of providers.
	Functions lang.Functions
	// Budget bounds all evaluations together; nil means that each has its own limit only.
	Budget *lang.Budget
}

// Known returns the value of an object outside of the expansion: a recorded one, or one that a plan has planned. ok is
// false if it is not known yet.
type Known func(lang.Address) (v cty.Value, ok bool)

// Expansion has the instances of the modules and blocks of a tree. It is immutable after Expand.
type Expansion struct {
	// Root is the instance of the root module.
	Root *Instance
	// Instances are those of all modules, sorted by their paths within their callers.
	Instances []*Instance
	// Waiting are the modules and blocks whose instances depend on values that are not known yet.
	Waiting []*Waiting

	tree   *Tree
	inputs Inputs
	// functions are those that expressions may call.
	functions lang.Functions
	// arguments are the parsed values of the inputs.
	arguments map[string]*Expr
	byPath    map[string]*Instance
	moves     []move
}

// Functions returns the functions that expressions of the module may call besides the built-in ones: those in the
// inputs, and those that read its files.
func (x *Expansion) Functions() lang.Functions { return x.functions }

// Instance is an instance of a module.
type Instance struct {
	// Path is the path of the instance, as in lang.Address.
	Path   string
	Config *Config
	// Parent is the instance with the call; nil for the root.
	Parent *Instance
	Call   *Call
	// Sets are the blocks of the module, sorted by their addresses.
	Sets []*Set

	// Adopted is true if the instance is that of the previous expansion, with all that is in it.
	Adopted bool

	// seen is a digest of what the module gets from its caller.
	seen [sha256.Size]byte
	// volatile is true if the instances of a block or module in it, or in a module that it calls, depend on objects.
	volatile bool
	// each has the key and value of the instance; nil if the call does not repeat the module.
	each *lang.Instance
	// from is what the value of each comes from.
	from *named
	// sets are the blocks whose instances are determined so far.
	sets map[BlockID]*Set
	// calls are the instances of the modules that this instance calls, by the names of the calls.
	calls map[string]*repeated
}

// repeated has the instances of one call.
type repeated struct {
	repetition
	instances []*Instance
	problem   diag.Diagnostics
	// busy is true while the instances are being determined.
	busy bool
}

// Set is a block in an instance of a module, with its keys.
type Set struct {
	*Block
	Module *Instance
	repetition
	busy bool
}

// repetition is an evaluated count or for_each.
type repetition struct {
	// Repeats is empty for what has neither.
	Repeats lang.Repetition
	// count is the number of instances without for_each.
	count  int
	keys   []string
	values map[string]cty.Value
	// from is what the values come from; nil without for_each.
	from *named
	// Waiting is why the instances are not known; nil if they are.
	Waiting *Waiting
}

// Waiting names a module or block whose instances are not known, and the values on which they depend.
type Waiting struct {
	// Address is that of the call or the block.
	Address lang.Address
	// Needs are the objects whose values are needed, sorted.
	Needs []lang.Address
	// Problem is the error for a plan that cannot wait.
	Problem v1alpha1.Diagnostic
}

// Len returns the number of instances.
func (r *repetition) Len() int { return r.count + len(r.keys) }

// Instance returns the key and the value of the i-th instance; nil if the block has neither count nor for_each.
func (r *repetition) Instance(i int) *lang.Instance {
	switch r.Repeats {
	case lang.RepeatCount:
		return &lang.Instance{Key: v1alpha1.InstanceKey{Index: i}}
	case lang.RepeatForEach:
		return &lang.Instance{Key: v1alpha1.InstanceKey{Named: true, Name: r.keys[i]}, Value: r.values[r.keys[i]]}
	}
	return nil
}

// Address returns the address of the block, without a key.
func (s *Set) Address() lang.Address {
	return lang.Address{Module: s.Module.Path, Mode: s.Mode, Type: s.Type, Name: s.Name}
}

// AddressOf returns the address of the i-th instance.
func (s *Set) AddressOf(i int) lang.Address {
	if of := s.Instance(i); of != nil {
		return s.Address().Instance(of.Key)
	}
	return s.Address()
}

// Expand determines the instances of a tree. known gives the values of objects outside, and of the tree's own
// resources. The diagnostics have positions in files; those about inputs have the field spec.inputs. With an error,
// the expansion is incomplete.
func (t *Tree) Expand(in Inputs, known Known) (*Expansion, diag.Diagnostics) {
	return t.ExpandAfter(nil, in, known)
}

// ExpandAfter is Expand with the previous expansion of the same tree; nil without one. It had no errors. ExpandAfter
// adopts each module instance whose arguments are the same as before, without evaluating anything in it.
func (t *Tree) ExpandAfter(previous *Expansion, in Inputs, known Known) (*Expansion, diag.Diagnostics) {
	if previous != nil && !previous.similar(t, in) {
		previous = nil
	}
	instances := 1
	if previous != nil {
		instances = len(previous.Instances)
	}
	x := &Expansion{
		tree: t, inputs: in, functions: functionsOf(t.files, in.Functions),
		Instances: make([]*Instance, 0, instances), byPath: make(map[string]*Instance, instances),
	}
	diags := x.readInputs()
	if diag.HasErrors(diags) {
		return x, diags
	}
	e := &expander{Values: newValues(x, known), previous: previous}
	e.expanding, e.digests = e, &digester{e.Values}
	x.Root = x.add(&Instance{Path: v1alpha1.ModulePath("", in.Name, nil), Config: t.Root})
	e.all(x.Root)
	diags = append(diags, x.listMoves()...)
	return x, sorted(append(diags, e.diags...))
}

// similar reports whether another expansion could have the same instances.
func (x *Expansion) similar(t *Tree, in Inputs) bool {
	return x.tree == t && x.inputs.Name == in.Name && x.inputs.Workspace == in.Workspace
}

// add notes an instance.
func (x *Expansion) add(i *Instance) *Instance {
	if len(i.Config.Calls) > 0 {
		i.calls = make(map[string]*repeated, len(i.Config.Calls))
	}
	i.sets = make(map[BlockID]*Set, len(i.Config.Blocks))
	x.byPath[i.Path] = i
	x.Instances = append(x.Instances, i)
	return i
}

// Waits returns why an address of the expansion has no instances yet: that of a block, of a module, or in one. It
// returns nil if they are known.
func (x *Expansion) Waits(a lang.Address) *Waiting {
	for _, w := range x.Waiting {
		if w.Address == a || w.Address.Covers(a) || a.Covers(w.Address) {
			return w
		}
	}
	return nil
}

// InstanceAt returns the instance of a module with a path; nil if there is none.
func (x *Expansion) InstanceAt(path string) *Instance { return x.byPath[path] }

// readInputs parses the values of the inputs.
func (x *Expansion) readInputs() diag.Diagnostics {
	var diags diag.Diagnostics
	variables := x.tree.Root.Variables
	x.arguments = make(map[string]*Expr, len(x.inputs.Values))
	for _, name := range sortedKeys(x.inputs.Values) {
		field := diag.KeyField("spec.inputs", name)
		if variables[name] == nil {
			diags = append(diags, diag.Errorf(field, "Value for undeclared variable",
				"The root module does not declare a variable named %q.%s", name,
				diag.DidYouMean(name, sortedKeys(variables))))
			continue
		}
		e := &Expr{Value: x.inputs.Values[name], Field: field, of: Positions{}}
		x.arguments[name] = e
		if !lang.HasTemplate(e.Value) {
			var err error
			if e.constant, err = lang.Literal(e.Value); err == nil {
				continue
			}
		}
		var found diag.Diagnostics
		e.parsed, found = lang.ParseExpression(e.Value, field,
			lang.ExpressionOptions{Functions: x.inputs.Functions, Budget: x.inputs.Budget})
		diags = append(diags, found...)
	}
	for _, name := range sortedKeys(variables) {
		if _, given := x.inputs.Values[name]; !given && variables[name].Default == cty.NilVal {
			diags = append(diags, diag.Errorf(diag.KeyField("spec.inputs", name), "No value for required variable",
				"The root module input variable %q is not set, and has no default value. Set spec.inputs.%s.", name,
				name))
		}
	}
	return diags
}

// expander expands the instances of modules when their values are needed, and finally all others.
type expander struct {
	*Values
	modules, blocks int
	previous        *Expansion
	digests         *digester
}

// all expands everything below an instance.
func (e *expander) all(i *Instance) {
	if i.Adopted {
		return
	}
	for _, id := range sortedIDs(i.Config.Blocks) {
		i.Sets = append(i.Sets, e.set(i, id))
	}
	for _, name := range sortedKeys(i.Config.Calls) {
		for _, child := range e.called(i, name).instances {
			e.all(child)
		}
	}
}

// set returns a block of a module instance. It determines the instances at the first call.
func (e *expander) set(i *Instance, id BlockID) *Set {
	b := i.Config.Blocks[id]
	if known := i.sets[id]; known != nil {
		if known.busy {
			e.selfReference(b.Range, id.String())
		}
		return known
	}
	s := &Set{Block: b, Module: i, busy: true}
	i.sets[id] = s
	defer func() { s.busy = false }()
	var diags diag.Diagnostics
	s.repetition, diags = e.repetition(i, &b.Repetition, s.Address(), b.Range)
	e.diags = append(e.diags, diags...)
	if e.blocks += s.Len(); e.blocks > MaxInstances && !e.full {
		e.full = true
		e.diags = append(e.diags, diag.Errorf(placeOf(b.Range), "Too many instances",
			"A Module has at most %d instances of resources.", MaxInstances))
	}
	if e.full {
		s.count, s.keys = 0, nil
	}
	if s.Waiting != nil {
		e.x.Waiting = append(e.x.Waiting, s.Waiting)
	}
	return s
}

// selfReference reports a count or for_each that depends on the instances that it determines.
func (e *expander) selfReference(r hcl.Range, what string) {
	e.diags = append(e.diags, diag.Errorf(placeOf(r), "Cycle",
		"The count or for_each of %s depends on %s itself. Remove the reference.", what, what))
}

// called returns the instances of a call. It expands them at the first call.
func (e *expander) called(i *Instance, name string) *repeated {
	call := i.Config.Calls[name]
	if known := i.calls[name]; known != nil {
		if known.busy {
			e.selfReference(call.Range, "module."+name)
		}
		return known
	}
	r := &repeated{busy: true}
	i.calls[name] = r
	defer func() { r.busy = false }()
	address := lang.Address{Module: i.Path, Mode: lang.ModeModule, Name: name}
	r.repetition, r.problem = e.repetition(i, &call.Repetition, address, call.Range)
	e.diags = append(e.diags, r.problem...)
	if r.Waiting != nil {
		e.x.Waiting = append(e.x.Waiting, r.Waiting)
		return r
	}
	child := i.Config.Children[name]
	if e.modules += r.Len(); e.modules > MaxModuleInstances || child == nil {
		if !e.full {
			e.full = true
			e.diags = append(e.diags, diag.Errorf(placeOf(call.Range), "Too many instances",
				"A Module has at most %d instances of modules.", MaxModuleInstances))
		}
		r.count, r.keys = 0, nil
		return r
	}
	for k := range r.Len() {
		each := r.Instance(k)
		var key *v1alpha1.InstanceKey
		if each != nil {
			key = &each.Key
		}
		path := v1alpha1.ModulePath(i.Path, name, key)
		next := &Instance{Path: path, Config: child, Parent: i, Call: call, each: each, from: r.from}
		if next.seen = e.digests.arguments(next); e.previous != nil {
			if old := e.previous.byPath[next.Path]; old != nil && !old.volatile && old.seen == next.seen {
				next = e.adopt(old, next)
			}
		}
		if !next.Adopted {
			e.x.add(next)
		}
		r.instances = append(r.instances, next)
	}
	return r
}

// adopt completes an instance with what an equal one has.
func (e *expander) adopt(old, next *Instance) *Instance {
	next.Adopted = true
	e.x.add(next)
	next.Sets = make([]*Set, len(old.Sets))
	for k, s := range old.Sets {
		own := *s
		own.Module = next
		next.Sets[k], next.sets[s.BlockID] = &own, &own
		e.blocks += own.Len()
	}
	for name, calls := range old.calls {
		own := &repeated{repetition: calls.repetition, instances: make([]*Instance, len(calls.instances))}
		for k, child := range calls.instances {
			own.instances[k] = e.adopt(child, &Instance{
				Path: child.Path, Config: child.Config, Parent: next, Call: child.Call, each: child.each,
				from: child.from, seen: child.seen,
			})
		}
		e.modules += own.Len()
		next.calls[name] = own
	}
	return next
}

// repetition evaluates count, for_each or enabled in a module instance.
func (e *expander) repetition(i *Instance, r *Repetition, a lang.Address, at hcl.Range) (repetition, diag.Diagnostics) {
	switch {
	case r.Count != nil:
		return e.count(i, r.Count, a)
	case r.ForEach != nil:
		return e.forEach(i, r.ForEach, a)
	case r.Enabled != nil:
		return e.enabled(i, r.Enabled, a)
	}
	return repetition{count: 1}, nil
}

// repeats evaluates an expression that repeats something. waiting is set if its value is not known.
func (e *expander) repeats(i *Instance, x *Expr, a lang.Address, summary,
	unknown string) (from *named, waiting *Waiting, diags diag.Diagnostics) {
	from, diags = e.evaluateTracked(x, i, nil)
	v := from.value
	if len(from.needs) > 0 {
		for at := i; at != nil; at = at.Parent {
			at.volatile = true
		}
	}
	if diag.HasErrors(diags) {
		return from, nil, diags
	}
	if v.HasMark(lang.Ephemeral) {
		return from, nil, diag.Diagnostics{x.problem(summary,
			"The value is ephemeral, so it is not known in later plans. It cannot determine which instances exist.")}
	}
	bare, _ := v.Unmark()
	if set := bare.Type().IsSetType(); !bare.IsKnown() || set && !bare.IsWhollyKnown() {
		needs := slices.SortedFunc(maps.Keys(from.needs), lang.Address.Compare)
		if v.HasMark(lang.Sensitive) && len(needs) > 0 && !slices.ContainsFunc(needs,
			func(need lang.Address) bool { _, known := e.known(need); return !known }) {
			return from, nil, diag.Diagnostics{x.problem(summary,
				"The value depends on a sensitive value of %s. It cannot determine which instances exist, because their keys are not secret.", needs[0])}
		}
		return from, &Waiting{Address: a, Needs: needs, Problem: x.problem(summary, "%s", unknown)}, nil
	}
	return from, nil, nil
}

// Terraform's texts for a count and a for_each that are not known.
const (
	unknownCount   = `The "count" value depends on resource attributes that cannot be determined until apply, so Hykube cannot predict how many instances will be created. To work around this, use the -target argument to first apply only the resources that the count depends on.`
	unknownForEach = `The "for_each" map includes keys derived from resource attributes that cannot be determined until apply, and so Hykube cannot determine the full set of keys that will identify the instances. When working with unknown values in for_each, it's better to define the map keys statically in your configuration and place apply-time results only in the map values. Alternatively, use the -target argument to first apply only the resources that the for_each value depends on.`
)

const summaryCount, summaryForEach, summaryEnabled = "Invalid count argument", "Invalid for_each argument",
	"Invalid enabled argument"

func (e *expander) count(i *Instance, x *Expr, a lang.Address) (repetition, diag.Diagnostics) {
	r := repetition{Repeats: lang.RepeatCount}
	from, waiting, diags := e.repeats(i, x, a, summaryCount, unknownCount)
	if r.Waiting = waiting; waiting != nil || diag.HasErrors(diags) {
		return r, diags
	}
	v, _ := from.value.Unmark() // as in Terraform, a count may be sensitive
	if v.IsNull() {
		return r, x.problems(summaryCount, `The given "count" argument value is null. An integer is required.`)
	}
	n, err := convert.Convert(v, cty.Number)
	if err != nil {
		return r, x.problems(summaryCount, `The given "count" argument value is unsuitable: %s.`, err)
	}
	count, accuracy := n.AsBigFloat().Int64()
	switch {
	case count < 0:
		return r, x.problems(summaryCount,
			`The given "count" argument value is unsuitable: must be greater than or equal to zero.`)
	case accuracy != 0:
		return r, x.problems(summaryCount, `The given "count" argument value is unsuitable: must be a whole number.`)
	case count > MaxInstances:
		return r, x.problems(summaryCount, `The given "count" argument value is unsuitable: the limit is %d.`,
			MaxInstances)
	}
	r.count = int(count)
	return r, nil
}

func (e *expander) enabled(i *Instance, x *Expr, a lang.Address) (repetition, diag.Diagnostics) {
	r := repetition{}
	from, waiting, diags := e.repeats(i, x, a, summaryEnabled,
		`The "enabled" value depends on resource attributes that cannot be determined until apply. To work around this, use the -target argument to first apply only the resources that it depends on.`)
	if r.Waiting = waiting; waiting != nil || diag.HasErrors(diags) {
		return r, diags
	}
	v, marks := from.value.Unmark()
	on, err := convert.Convert(v, cty.Bool)
	if err != nil || on.IsNull() || len(marks) > 0 {
		return r, x.problems(summaryEnabled, "The value must be true or false, and neither null nor sensitive.")
	}
	if on.True() {
		r.count = 1
	}
	return r, nil
}

func (e *expander) forEach(i *Instance, x *Expr, a lang.Address) (repetition, diag.Diagnostics) {
	r := repetition{Repeats: lang.RepeatForEach}
	from, waiting, diags := e.repeats(i, x, a, summaryForEach, unknownForEach)
	if r.Waiting = waiting; waiting != nil || diag.HasErrors(diags) {
		return r, diags
	}
	r.from = from
	if from.value.HasMark(lang.Sensitive) {
		return r, x.problems(summaryForEach,
			"Sensitive values, or values derived from sensitive values, cannot be used as for_each arguments. If used, the sensitive value could be exposed as a resource instance key.")
	}
	v, _ := from.value.Unmark()
	ty := v.Type()
	switch {
	case v.IsNull():
		return r, x.problems(summaryForEach,
			`The given "for_each" argument value is unsuitable: the given "for_each" argument value is null. A map, or set of strings is allowed.`)
	case !ty.IsMapType() && !ty.IsObjectType() && !ty.IsSetType():
		return r, x.problems(summaryForEach,
			`The given "for_each" argument value is unsuitable: the "for_each" argument must be a map, or set of strings, and you have provided a value of type %s.`, ty.FriendlyName())
	case ty.IsSetType() && v.LengthInt() > 0 && ty.ElementType() != cty.String:
		return r, x.problems(summaryForEach,
			`The given "for_each" argument value is unsuitable: "for_each" supports maps and sets of strings, but you have provided a set containing type %s.`, ty.ElementType().FriendlyName())
	case v.LengthInt() > MaxInstances:
		return r, x.problems(summaryForEach, `The given "for_each" argument value is unsuitable: the limit is %d keys.`,
			MaxInstances)
	}
	r.values = make(map[string]cty.Value, v.LengthInt())
	for it := v.ElementIterator(); it.Next(); {
		k, member := it.Element()
		if k.IsNull() {
			return r, x.problems(summaryForEach,
				`The given "for_each" argument value is unsuitable: "for_each" sets must not contain null values.`)
		}
		key := k.AsString()
		if len(key) > maxKeyBytes {
			return r, x.problems(summaryForEach,
				`The given "for_each" argument value is unsuitable: the key %.40q... has %d bytes, and the limit is %d.`, key, len(key), maxKeyBytes)
		}
		r.keys, r.values[key] = append(r.keys, key), member
	}
	slices.Sort(r.keys)
	return r, nil
}

// problem returns an error about an expression.
func (e *Expr) problem(summary, format string, args ...any) v1alpha1.Diagnostic {
	at := e.Field
	if e.Range.Filename != "" {
		at = placeOf(e.Range)
	}
	return diag.Errorf(at, summary, format, args...)
}

func (e *Expr) problems(summary, format string, args ...any) diag.Diagnostics {
	return diag.Diagnostics{e.problem(summary, format, args...)}
}

func placeOf(r hcl.Range) string { return place(r.Filename, r.Start.Line, r.Start.Column) }

// sortedIDs returns the IDs of blocks, sorted.
func sortedIDs(blocks map[BlockID]*Block) []BlockID {
	ids := make([]BlockID, 0, len(blocks))
	for id := range blocks {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b BlockID) int { return a.compare(b) })
	return ids
}

// String returns the address as in Terraform.
func (s *Set) String() string { return fmt.Sprint(s.Address()) }
