package plan

import (
	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/schema"
)

// ProposedNew merges a configuration into the prior state: what the configuration sets comes from it, and what
// only the provider can know stays as it was. It is what a provider is asked to plan. Both values conform to the
// block's type; prior is wholly known, and null for what does not exist yet. Marks are dropped.
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
		out[nb.TypeName] = proposeNested(nestedBlock{nb.Block}, nb.Nesting, prior.GetAttr(nb.TypeName), config.GetAttr(nb.TypeName))
	}
	return cty.ObjectVal(out)
}

func proposeAttributes(attrs []*schema.Attribute, prior, config cty.Value, out map[string]cty.Value) {
	for _, a := range attrs {
		p, c := attr(prior, a.Name, a.Type), config.GetAttr(a.Name)
		switch {
		case a.Computed && c.IsNull():
			// The provider's value stays, unless it can be seen to have come from a configuration that is gone.
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

// attr is an attribute of an object, null when the object is.
func attr(v cty.Value, name string, ty cty.Type) cty.Value {
	if v.IsNull() || v.IsKnown() && !v.Type().HasAttribute(name) {
		return cty.NullVal(ty)
	}
	return v.GetAttr(name)
}

// cameFromConfig says whether a nested value holds something that only a configuration can set.
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

// eachElement visits the objects of a nested value.
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

// nestedSchema is what nested blocks and nested attributes have in common.
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

// proposeList correlates by index; what is new in the configuration is taken as it is.
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

// proposeMap correlates by key; what is new in the configuration is taken as it is.
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

// proposeSet takes, for each element of the configuration, the first unused prior element that it could have
// become. To find it, the prior elements are grouped by those attributes that must be equal: comparing each with
// each is quadratic.
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

// fixedHash hashes what a provider may not change: attributes that are not computed, without a schema of their own.
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

// unrefined forgets what is known about unknown values, also about those within the value: "db-${unknown}" in a map is
// known to begin with "db-", and providers need not repeat that.
func unrefined(v cty.Value) cty.Value {
	if v.IsWhollyKnown() {
		return v
	}
	// The function below returns no error, so neither does Transform.
	out, _ := cty.Transform(v, func(_ cty.Path, v cty.Value) (cty.Value, error) {
		if !v.IsKnown() {
			return cty.UnknownVal(v.Type()), nil
		}
		return v, nil
	})
	return out
}

// couldBecome says whether the prior element may have come from the configured one: it differs at most in computed
// attributes that the configuration leaves to the provider. Nested sets must be equal.
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
