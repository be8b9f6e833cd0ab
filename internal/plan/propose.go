package plan

import (
	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/schema"
)

// ProposedNew merges a configuration into the prior state, as the provider's input for a plan. Configured values come
// from the configuration; computed values keep their prior value. Both values must conform to the block's type. prior
// must be wholly known; null means that the instance does not exist. The result has no marks.
//
// The rules are those of Terraform's objchange.ProposedNew.
func ProposedNew(block *schema.Block, prior, config cty.Value) cty.Value {
	return proposeBlock(block, lang.WithoutMarks(prior), lang.WithoutMarks(config))
}

func proposeBlock(b *schema.Block, prior, config cty.Value) cty.Value {
	switch {
	case !config.IsKnown():
		return config
	case config.IsNull():
		return prior
	case prior.IsNull():
		prior = schema.EmptyBlock(b)
	}
	out := make(map[string]cty.Value, len(b.Attributes)+len(b.Blocks))
	proposeAttributes(b.Attributes, prior, config, out)
	for _, nb := range b.Blocks {
		out[nb.TypeName] = proposeNested(nestedBlock{nb.Block}, nb.Nesting, prior.GetAttr(nb.TypeName),
			config.GetAttr(nb.TypeName))
	}
	return cty.ObjectVal(out)
}

func proposeAttributes(attrs []*schema.Attribute, prior, config cty.Value, out map[string]cty.Value) {
	for _, a := range attrs {
		p, c := attr(prior, a.Name, a.Type), config.GetAttr(a.Name)
		switch {
		case a.Computed && c.IsNull():
			// Keep the provider's value, unless it contains values that only a former configuration can have set.
			out[a.Name] = p
			if a.Optional && a.Nested != nil && cameFromConfig(a.Nested, p) {
				out[a.Name] = c
			}
		case a.Nested != nil:
			out[a.Name] = proposeNested(nestedObject{a.Nested}, a.Nested.Nesting, p, c)
		default:
			out[a.Name] = c
		}
	}
}

// attr returns an attribute of an object, or null if the object is null or lacks it.
func attr(v cty.Value, name string, ty cty.Type) cty.Value {
	if v.IsNull() || v.IsKnown() && !v.Type().HasAttribute(name) {
		return cty.NullVal(ty)
	}
	return v.GetAttr(name)
}

// cameFromConfig reports whether a nested value holds a non-null value that only a configuration can set.
func cameFromConfig(o *schema.Object, v cty.Value) bool {
	found := false
	eachElement(o.Nesting, v, func(e cty.Value) {
		if found || e.IsNull() || !e.IsKnown() {
			return
		}
		for _, a := range o.Attributes {
			inner := e.GetAttr(a.Name)
			if inner.IsNull() {
				continue
			}
			if !a.Computed || a.Nested != nil && cameFromConfig(a.Nested, inner) {
				found = true
				return
			}
		}
	})
	return found
}

// eachElement calls f for each object of a nested value.
func eachElement(n schema.Nesting, v cty.Value, f func(cty.Value)) {
	switch {
	case v.IsNull() || !v.IsKnown():
	case n == schema.NestingSingle || n == schema.NestingGroup:
		f(v)
	default:
		for it := v.ElementIterator(); it.Next(); {
			_, e := it.Element()
			f(e)
		}
	}
}

// nestedSchema is the common interface of nested blocks and nested attributes.
type nestedSchema interface {
	propose(prior, config cty.Value) cty.Value
	elementType() cty.Type
	attributes() []*schema.Attribute
	blocks() []*schema.NestedBlock
}

type nestedBlock struct{ *schema.Block }

func (n nestedBlock) propose(prior, config cty.Value) cty.Value {
	return proposeBlock(n.Block, prior, config)
}
func (n nestedBlock) elementType() cty.Type           { return n.ImpliedType() }
func (n nestedBlock) attributes() []*schema.Attribute { return n.Attributes }
func (n nestedBlock) blocks() []*schema.NestedBlock   { return n.Blocks }

type nestedObject struct{ *schema.Object }

func (n nestedObject) propose(prior, config cty.Value) cty.Value {
	if config.IsNull() || !config.IsKnown() {
		return config
	}
	out := make(map[string]cty.Value, len(n.Attributes))
	proposeAttributes(n.Attributes, prior, config, out)
	return cty.ObjectVal(out)
}
func (n nestedObject) elementType() cty.Type           { return cty.Object(schema.AttributeTypes(n.Attributes)) }
func (n nestedObject) attributes() []*schema.Attribute { return n.Attributes }
func (n nestedObject) blocks() []*schema.NestedBlock   { return nil }

func proposeNested(n nestedSchema, nesting schema.Nesting, prior, config cty.Value) cty.Value {
	if !config.IsKnown() {
		return config
	}
	if nesting == schema.NestingGroup && config.IsNull() && prior.IsNull() {
		return config
	}
	if nesting != schema.NestingGroup && config.IsNull() {
		return config
	}
	switch nesting {
	case schema.NestingList:
		return proposeList(n, prior, config)
	case schema.NestingMap:
		return proposeMap(n, prior, config)
	case schema.NestingSet:
		return proposeSet(n, prior, config)
	default:
		return n.propose(prior, config)
	}
}

// proposeList pairs elements by index; additional elements of the configuration are unchanged.
func proposeList(n nestedSchema, prior, config cty.Value) cty.Value {
	vals := config.AsValueSlice()
	if len(vals) == 0 {
		return config
	}
	var before []cty.Value
	if !prior.IsNull() && prior.IsKnown() {
		before = prior.AsValueSlice()
	}
	for i, c := range vals {
		if i < len(before) {
			vals[i] = n.propose(before[i], c)
		}
	}
	if config.Type().IsTupleType() || !cty.CanListVal(vals) {
		return cty.TupleVal(vals)
	}
	return cty.ListVal(vals)
}

// proposeMap pairs elements by key; additional elements of the configuration are unchanged.
func proposeMap(n nestedSchema, prior, config cty.Value) cty.Value {
	vals := config.AsValueMap()
	if len(vals) == 0 {
		return config
	}
	var before map[string]cty.Value
	if !prior.IsNull() && prior.IsKnown() {
		before = prior.AsValueMap()
	}
	for k, c := range vals {
		if p, ok := before[k]; ok {
			vals[k] = n.propose(p, c)
		}
	}
	if config.Type().IsObjectType() || !cty.CanMapVal(vals) {
		return cty.ObjectVal(vals)
	}
	return cty.MapVal(vals)
}

// proposeSet pairs each element of the configuration with the first unused prior element that could have become it. It
// groups the prior elements by the attributes that must be equal, since comparing all pairs would take quadratic time.
func proposeSet(n nestedSchema, prior, config cty.Value) cty.Value {
	vals := config.AsValueSlice()
	if len(vals) == 0 {
		return config
	}
	groups := make(map[int][]cty.Value)
	if !prior.IsNull() && prior.IsKnown() {
		for _, p := range prior.AsValueSlice() {
			h := fixedHash(n, p)
			groups[h] = append(groups[h], p)
		}
	}
	absent := cty.NullVal(n.elementType())
	for i, c := range vals {
		h, match := fixedHash(n, c), absent
		for k, p := range groups[h] {
			if couldBecome(n, p, c) {
				match = p
				groups[h] = append(groups[h][:k:k], groups[h][k+1:]...)
				break
			}
		}
		vals[i] = n.propose(match, c)
	}
	if !cty.CanSetVal(vals) {
		return config
	}
	return cty.SetVal(vals)
}

// fixedHash hashes the attributes that a provider may not change: those that are neither computed nor nested.
func fixedHash(n nestedSchema, v cty.Value) int {
	if v.IsNull() || !v.IsKnown() {
		return 0
	}
	h := 17
	for _, a := range n.attributes() {
		if !a.Computed && a.Nested == nil {
			h = h*31 + unrefined(v.GetAttr(a.Name)).Hash()
		}
	}
	return h
}

// unrefined removes the refinements of unknown values at any depth. The value of "db-${unknown}" is known to begin with
// "db-", and providers need not repeat that.
func unrefined(v cty.Value) cty.Value {
	if v.IsWhollyKnown() {
		return v
	}
	// The callback returns no error, so Transform returns none.
	out, _ := cty.Transform(v, func(_ cty.Path, v cty.Value) (cty.Value, error) {
		if !v.IsKnown() {
			return cty.UnknownVal(v.Type()), nil
		}
		return v, nil
	})
	return out
}

// couldBecome reports whether the prior element may have come from the configured one. They may differ only in computed
// attributes that the configuration does not set. Nested sets must be equal.
func couldBecome(n nestedSchema, prior, config cty.Value) bool {
	if unrefined(config).RawEquals(unrefined(prior)) {
		return true
	}
	if prior.IsNull() || config.IsNull() || !config.IsKnown() {
		return prior.IsNull()
	}
	for _, a := range n.attributes() {
		p, c := prior.GetAttr(a.Name), config.GetAttr(a.Name)
		switch {
		case unrefined(c).RawEquals(unrefined(p)):
		case c.Type().IsSetType():
			return false
		case a.Nested != nil:
			if !couldBecomeNested(nestedObject{a.Nested}, a.Nested.Nesting, p, c) {
				return false
			}
		case !a.Computed || !c.IsNull():
			return false
		}
	}
	for _, nb := range n.blocks() {
		p, c := prior.GetAttr(nb.TypeName), config.GetAttr(nb.TypeName)
		if unrefined(c).RawEquals(unrefined(p)) {
			continue
		}
		if c.Type().IsSetType() || !couldBecomeNested(nestedBlock{nb.Block}, nb.Nesting, p, c) {
			return false
		}
	}
	return true
}

func couldBecomeNested(n nestedSchema, nesting schema.Nesting, prior, config cty.Value) bool {
	if prior.IsNull() {
		return true
	}
	if nesting == schema.NestingSingle || nesting == schema.NestingGroup {
		return couldBecome(n, prior, config)
	}
	if !prior.IsKnown() || prior.LengthInt() == 0 {
		return true
	}
	if config.IsNull() || !config.IsKnown() {
		return false
	}
	if nesting == schema.NestingMap {
		configs := config.AsValueMap()
		for k, p := range prior.AsValueMap() {
			c, ok := configs[k]
			if !ok || !couldBecome(n, p, c) {
				return false
			}
		}
		return true
	}
	configs := config.AsValueSlice()
	for i, p := range prior.AsValueSlice() {
		if i >= len(configs) || !couldBecome(n, p, configs[i]) {
			return false
		}
	}
	return true
}
