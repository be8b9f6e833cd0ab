package module

import (
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
)

// This file parses the expressions of a tree and checks what they refer to.

// rootPath is the path of the root module in the references of parsed expressions. An evaluation replaces it by the
// path of an instance.
const rootPath = "module.root"

// StaticPath returns the path of the module in the references of its parsed templates: that of its instances without
// keys. lang.EvaluationContext.Module replaces it by the path of an instance.
func (c *Config) StaticPath() string {
	at := rootPath
	for _, name := range c.Path {
		at = v1alpha1.ModulePath(at, name, nil)
	}
	return at
}

// compiler parses the expressions of one module.
type compiler struct {
	tree   *Tree
	config *Config
	diags  diag.Diagnostics
}

// compile parses the expressions of all modules and checks their references.
func (t *Tree) compile(c *Config) diag.Diagnostics {
	k := &compiler{tree: t, config: c}
	k.variables()
	for _, name := range sortedKeys(c.Locals) {
		k.value(c.Locals[name], "")
	}
	for _, name := range sortedKeys(c.Outputs) {
		out := c.Outputs[name]
		k.value(out.Value, "")
		k.conditions(out.Preconditions, "")
		k.targets(out.DependsOn)
	}
	for _, name := range sortedKeys(c.Calls) {
		k.call(c.Calls[name])
	}
	for _, id := range sortedIDs(c.Blocks) {
		k.block(c.Blocks[id])
	}
	for _, name := range sortedKeys(c.Checks) {
		k.conditions(c.Checks[name].Assertions, "")
	}
	byName := func(a, b ProviderID) int { return strings.Compare(a.String(), b.String()) }
	for _, id := range slices.SortedFunc(maps.Keys(c.Providers), byName) {
		p := c.Providers[id]
		k.parse(p.ForEach, "", cty.NilType)
		k.spec(p.Spec, repeats(nil, p.ForEach), p.positions, p.Range)
	}
	k.moves()
	for _, i := range c.Imports {
		for _, step := range i.To.Steps {
			k.parse(step.Key, repeats(nil, i.ForEach), cty.NilType)
		}
		k.parse(i.To.Key, repeats(nil, i.ForEach), cty.NilType)
		k.parse(i.ForEach, "", cty.NilType)
		k.parse(i.ID, repeats(nil, i.ForEach), cty.String)
		k.parse(i.Identity, repeats(nil, i.ForEach), cty.NilType)
	}
	for _, name := range sortedKeys(c.Children) {
		k.diags = append(k.diags, t.compile(c.Children[name])...)
	}
	return k.diags
}

// moves checks moved and removed blocks.
func (k *compiler) moves() {
	for _, m := range k.config.Moved {
		for _, t := range []Target{m.From, m.To} {
			if !t.constant() {
				k.fail(placeOf(t.Range), "Invalid address", "The keys in a moved block must be written out.")
			}
		}
		if m.From.Key == nil && m.To.Key == nil && k.declares(m.From) {
			k.fail(placeOf(m.Range), "Moved object still exists", movedExists, m.From.Text)
		}
	}
	for _, r := range k.config.Removed {
		if k.declares(r.From) {
			k.fail(placeOf(r.Range), "Removed resource still exists",
				"This statement declares that %s was removed, but it is still declared. Remove the declaration, or the removed block.", r.From.Text)
		}
	}
}

// declares reports whether the module has the block or the call of a target without keys.
func (k *compiler) declares(t Target) bool {
	c := k.config
	for i, step := range t.Steps {
		last := i == len(t.Steps)-1 && t.Block == BlockID{}
		if step.Key != nil {
			return false
		}
		if last {
			return c.Calls[step.Name] != nil
		}
		if c = c.Children[step.Name]; c == nil {
			return false
		}
	}
	return c.Blocks[t.Block] != nil
}

// constant reports whether all keys of a target are written out.
func (t *Target) constant() bool {
	for _, s := range t.Steps {
		if s.Key != nil && s.Key.instanceKey() == nil {
			return false
		}
	}
	return t.Key == nil || t.Key.instanceKey() != nil
}

// repeats returns which of each and count a block's expressions may refer to.
func repeats(count, forEach *Expr) lang.Repetition {
	switch {
	case count != nil:
		return lang.RepeatCount
	case forEach != nil:
		return lang.RepeatForEach
	}
	return ""
}

func (r *Repetition) repeats() lang.Repetition { return repeats(r.Count, r.ForEach) }

// parse parses an expression, which may be nil, and checks its references.
func (k *compiler) parse(e *Expr, repeats lang.Repetition, ty cty.Type) {
	if e == nil {
		return
	}
	var diags diag.Diagnostics
	e.parsed, diags = lang.ParseExpression(e.Value, e.Field, lang.ExpressionOptions{
		Module: k.config.StaticPath(), Repetition: repeats, Type: ty, Functions: k.tree.functions,
		Budget: k.tree.budget,
	})
	k.diags = append(k.diags, e.of.Located(diags, e.Range)...)
	k.references(e.parsed.References(), e.of, e.Range.Filename)
}

// value parses the expression of a named value, and its parts.
func (k *compiler) value(e *Expr, repeats lang.Repetition) {
	k.parse(e, repeats, cty.NilType)
	if e == nil || e.members != nil {
		return
	}
	e.members = membersOf(e)
	for _, member := range e.members {
		// The whole expression has their problems.
		member.parsed, _ = lang.ParseExpression(member.Value, member.Field, lang.ExpressionOptions{
			Module: k.config.StaticPath(), Repetition: repeats, Functions: k.tree.functions, Budget: k.tree.budget,
		})
	}
}

func (k *compiler) conditions(list []Condition, repeats lang.Repetition) {
	for _, c := range list {
		k.parse(c.Condition, repeats, cty.Bool)
		k.parse(c.Message, repeats, cty.String)
	}
}

func (k *compiler) variables() {
	for _, name := range sortedKeys(k.config.Variables) {
		k.conditions(k.config.Variables[name].Validations, "")
	}
}

func (k *compiler) repetition(r *Repetition) {
	k.parse(r.Count, "", cty.NilType)
	k.parse(r.ForEach, "", cty.NilType)
	k.parse(r.Enabled, "", cty.NilType)
}

func (k *compiler) call(call *Call) {
	k.repetition(&call.Repetition)
	k.targets(call.DependsOn)
	child := k.config.Children[call.Name]
	for _, name := range sortedKeys(call.Arguments) {
		e := call.Arguments[name]
		k.value(e, call.repeats())
		if child != nil && child.Variables[name] == nil {
			k.fail(placeOf(e.Range), "Unsupported argument",
				"An argument named %q is not expected here: the module %q has no such variable.%s", name, call.Name,
				diag.DidYouMean(name, sortedKeys(child.Variables)))
		}
	}
	if child == nil {
		return
	}
	for _, name := range sortedKeys(call.Arguments) {
		if d := child.Variables[name]; d != nil {
			k.argument(call.Arguments[name], d)
		}
	}
	for _, name := range sortedKeys(child.Variables) {
		if child.Variables[name].Default == cty.NilVal && call.Arguments[name] == nil {
			k.fail(placeOf(call.Range), "Missing required argument",
				"The argument %q is required, but no definition was found.", name)
		}
	}
	k.providers(call, child)
}

// argument checks the type of an argument as far as its references do not matter.
func (k *compiler) argument(e *Expr, d *Variable) {
	v, diags := e.parsed.Evaluate(func(lang.Address) (cty.Value, bool) { return cty.DynamicVal, true }, cty.NilVal)
	if diag.HasErrors(diags) {
		return // parse has reported it
	}
	if _, err := d.convert(v); err != nil {
		k.diags = append(k.diags, d.unsuitable(e, describe(err)))
	}
	if v.IsNull() && !d.Nullable && d.Default == cty.NilVal {
		k.diags = append(k.diags, d.unsuitable(e, "required variable may not be set to null"))
	}
}

// providers checks which provider configurations a call passes.
func (k *compiler) providers(call *Call, child *Config) {
	passed := map[ProviderID]bool{}
	for _, p := range call.Providers {
		passed[p.Inner] = true
		k.parse(p.Outer.Key, call.repeats(), cty.NilType)
		if p.Outer.Alias != "" && !k.config.hasProvider(p.Outer.ProviderID) {
			k.fail(placeOf(call.Range), "Provider configuration not present",
				"The module passes the provider configuration %s, which this module does not have.", p.Outer)
		}
		if p.Inner.Alias != "" && !child.hasProvider(p.Inner) {
			k.fail(placeOf(call.Range), "Reference to undefined provider",
				"The module %q has no configuration_aliases entry for %s in its required_providers.", call.Name,
				p.Inner)
		}
	}
	for _, id := range child.aliases() {
		if !passed[id] {
			k.fail(placeOf(call.Range), "Missing required provider configuration",
				"The child module requires an additional configuration for the provider %q, with the local name %q. Pass it in the argument providers.", id.Name, id)
		}
	}
	if repeated := call.Count != nil || call.ForEach != nil; repeated || len(call.DependsOn) > 0 {
		k.legacyProviders(call, child)
	}
}

// legacyProviders reports provider blocks in a module that is repeated.
func (k *compiler) legacyProviders(call *Call, child *Config) {
	for _, p := range child.Providers {
		if len(p.Spec) > 0 {
			k.fail(placeOf(call.Range), "Module is incompatible with count, for_each, and depends_on",
				"The module %q contains its own provider configurations, so the argument count, for_each or depends_on cannot be used with it: see %s.", call.Name, placeOf(p.Range))
			return
		}
	}
	for _, grandchild := range child.Children {
		k.legacyProviders(call, grandchild)
	}
}

// aliases returns the provider configurations that a caller must pass.
func (c *Config) aliases() []ProviderID {
	var out []ProviderID
	for _, name := range sortedKeys(c.Required) {
		out = append(out, c.Required[name].Aliases...)
	}
	return out
}

func (c *Config) hasProvider(id ProviderID) bool {
	return c.Providers[id] != nil || slices.Contains(c.aliases(), id)
}

func (k *compiler) block(b *Block) {
	k.repetition(&b.Repetition)
	k.targets(b.DependsOn)
	l := &b.Lifecycle
	k.parse(l.PreventDestroy, "", cty.Bool)
	k.parse(l.Destroy, "", cty.Bool)
	k.conditions(l.Preconditions, b.repeats())
	for _, c := range l.Postconditions { // only the schema tells what "self" has
		for _, e := range []*Expr{c.Condition, c.Message} {
			options := lang.ExpressionOptions{Module: k.config.StaticPath(), Repetition: b.repeats(),
				Budget: k.tree.budget}
			refs, _ := options.References(e.Value, e.Field)
			k.references(refs, e.of, e.Range.Filename)
		}
	}
	for _, e := range l.ReplaceTriggeredBy {
		k.parse(e, b.repeats(), cty.NilType)
	}
	for _, t := range l.Triggers {
		k.parse(t.Condition, b.repeats(), cty.Bool)
	}
	if ref := b.Provider; ref != nil {
		k.parse(ref.Key, b.repeats(), cty.NilType)
		if ref.Alias != "" && !k.config.hasProvider(ref.ProviderID) {
			k.fail(placeOf(b.Range), "Provider configuration not present",
				"%s refers to the provider configuration %s, which its module does not have.", b.BlockID,
				ref.ProviderID)
		}
	}
	b.spec = k.spec(b.Spec, b.repeats(), b.positions, b.Range)
	b.digest = b.digestOfTemplate(k.tree.digest)
}

// spec parses a spec without its schema, and checks its references.
func (k *compiler) spec(spec map[string]any, repeats lang.Repetition, positions Positions,
	r hcl.Range) *lang.Expression {
	parsed, diags := lang.ParseExpression(spec, "spec",
		lang.ExpressionOptions{Module: k.config.StaticPath(), Repetition: repeats, Functions: k.tree.functions,
			Budget: k.tree.budget})
	k.diags = append(k.diags, positions.Located(diags, r)...)
	k.references(parsed.References(), positions, r.Filename)
	return parsed
}

func (k *compiler) fail(at, summary, format string, args ...any) {
	k.diags = append(k.diags, diag.Errorf(at, summary, format, args...))
}

// references checks that the module declares what an expression refers to.
func (k *compiler) references(refs []lang.Reference, of Positions, file string) {
	c := k.config
	where := "the root module"
	if len(c.Path) > 0 {
		where = "module." + strings.Join(c.Path, ".module.")
	}
	for _, r := range refs {
		at := of.Locate(r.Field)
		if at == "" {
			at = file
		}
		a := r.Address
		called := a
		if a.Mode == lang.ModeOutput {
			called = a.Called()
		}
		call, _, _ := called.Set()
		switch a.Mode {
		case lang.ModeVariable:
			if c.Variables[a.Name] == nil {
				k.fail(at, "Reference to undeclared input variable",
					"An input variable with the name %q has not been declared.%s", a.Name,
					suggestion(a.Name, sortedKeys(c.Variables), fmtDeclare("variable", a.Name)))
			}
		case lang.ModeLocal:
			if c.Locals[a.Name] == nil {
				k.fail(at, "Reference to undeclared local value",
					"A local value with the name %q has not been declared.%s", a.Name,
					diag.DidYouMean(a.Name, sortedKeys(c.Locals)))
			}
		case lang.ModeModule, lang.ModeOutput:
			if c.Calls[call.Name] == nil {
				k.fail(at, "Reference to undeclared module", "No module call named %q is declared in %s.%s", call.Name,
					where, diag.DidYouMean(call.Name, sortedKeys(c.Calls)))
			}
		case lang.ModePath, lang.ModeTerraform:
		default:
			set, _, _ := a.Set()
			if id := (BlockID{a.Mode, a.Type, set.Name}); c.Blocks[id] == nil {
				k.undeclared(at, id, where)
			}
		}
	}
}

func fmtDeclare(kind, name string) string {
	return " This variable can be declared with a " + kind + " " + quoted(name) + " {} block."
}

// suggestion returns a similar name, or otherwise the remedy.
func suggestion(name string, known []string, remedy string) string {
	if near := diag.DidYouMean(name, known); near != "" {
		return near
	}
	return remedy
}

func (k *compiler) undeclared(at string, id BlockID, where string) {
	what := map[v1alpha1.Mode]string{"": "A managed resource", v1alpha1.ModeData: "A data resource",
		v1alpha1.ModeEphemeral: "An ephemeral resource"}[id.Mode]
	if id.Mode == "" && k.config.Blocks[BlockID{v1alpha1.ModeData, id.Type, id.Name}] != nil {
		k.fail(at, "Reference to undeclared resource",
			"%s %q %q has not been declared in %s. Did you mean the data resource data.%s.%s?", what, id.Type, id.Name,
			where, id.Type, id.Name)
		return
	}
	var names []string
	for known := range k.config.Blocks {
		if known.Mode == id.Mode && known.Type == id.Type {
			names = append(names, known.Name)
		}
	}
	slices.Sort(names)
	k.fail(at, "Reference to undeclared resource", "%s %q %q has not been declared in %s.%s", what, id.Type, id.Name,
		where, diag.DidYouMean(id.Name, names))
}

// targets checks that the module declares what depends_on names.
func (k *compiler) targets(list []Target) {
	for _, t := range list {
		switch {
		case len(t.Steps) > 0 && k.config.Calls[t.Steps[0].Name] == nil:
			k.fail(placeOf(t.Range), "Reference to undeclared module",
				"No module call named %q is declared in this module.", t.Steps[0].Name)
		case len(t.Steps) > 0 || t.Block.Type == "var" || t.Block.Type == "local":
		case k.config.Blocks[t.Block] == nil:
			k.undeclared(placeOf(t.Range), t.Block, "this module")
		}
	}
}
