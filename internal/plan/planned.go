package plan

import (
	"maps"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/schema"
)

// CheckPlanned reports where a provider's planned state breaks the rules. A planned value must equal the configuration
// or the prior state, or be the provider's choice where the configuration sets nothing. All values must conform to the
// block's type. The errors are cty.PathErrors and never contain a sensitive value. The caller decides whether to ignore
// them for providers on the legacy SDK.
//
// The rules are those of Terraform's objchange.AssertPlanValid.
func CheckPlanned(block *schema.Block, prior, config, planned cty.Value) []error {
	var p problems
	config, secret := unmarkNoting(config)
	p.checkBlock(block, lang.WithoutMarks(prior), config, lang.WithoutMarks(planned), nil, secret)
	return p
}

// secrets are the paths of the values that are marked as sensitive.
type secrets []cty.Path

func unmarkNoting(v cty.Value) (cty.Value, secrets) {
	v, marks := v.UnmarkDeepWithPaths()
	var out secrets
	for _, m := range marks {
		out = append(out, m.Path)
	}
	return v, out
}

// cover reports whether a marked path contains this path, or this path contains a marked one.
func (s secrets) cover(t *pathBuilder) bool {
	if len(s) == 0 {
		return false
	}
	at := t.path()
	for _, p := range s {
		if at.HasPrefix(p) || p.HasPrefix(at) {
			return true
		}
	}
	return false
}

func (p *problems) checkBlock(b *schema.Block, prior, config, planned cty.Value, at *pathBuilder, secret secrets) {
	if !p.bothPresent(config, planned, at) {
		return
	}
	p.checkAttributes(b.Attributes, prior, config, planned, at, secret)
	for _, nb := range b.Blocks {
		c, v := config.GetAttr(nb.TypeName), planned.GetAttr(nb.TypeName)
		p.checkNestedBlock(nb, attr(prior, nb.TypeName, v.Type()), c, v, at.attr(nb.TypeName), secret)
	}
}

// bothPresent reports whether both the plan and the configuration are non-null. It adds a problem if only one of them
// is null.
func (p *problems) bothPresent(config, planned cty.Value, at *pathBuilder) bool {
	switch {
	case planned.IsNull() && !config.IsNull():
		p.add(at, "planned for absence but config wants existence")
	case config.IsNull() && !planned.IsNull():
		p.add(at, "planned for existence but config wants absence")
	}
	return !planned.IsNull() && !config.IsNull()
}

func (p *problems) checkAttributes(attrs []*schema.Attribute, prior, config, planned cty.Value, at *pathBuilder,
	secret secrets) {
	for _, a := range attrs {
		p.checkAttribute(a, attr(prior, a.Name, a.Type), config.GetAttr(a.Name), planned.GetAttr(a.Name),
			at.attr(a.Name), secret)
	}
}

func (p *problems) checkAttribute(a *schema.Attribute, prior, config, planned cty.Value, at *pathBuilder,
	secret secrets) {
	same := func(x, y cty.Value) bool { return unrefined(x).RawEquals(unrefined(y)) }
	quiet := a.Sensitive || a.WriteOnly || secret.cover(at)
	switch {
	case same(planned, config):
	case a.WriteOnly && planned.IsNull():
		// The provider has received the value; no state stores it.
	case same(planned, prior) && !prior.IsNull() && !config.IsNull():
		// The provider treats the configured value as equivalent to the prior one.
	case a.Computed && !a.Optional, a.Computed && config.IsNull():
		// The provider chooses the value.
	case config.IsNull() && quiet:
		p.add(at, "sensitive planned value for a non-computed attribute")
	case config.IsNull():
		p.add(at, "planned value %s for a non-computed attribute", show(planned))
	case a.Nested != nil:
		p.checkNestedAttribute(a, prior, config, planned, at, secret)
	case prior.IsNull() && quiet:
		p.add(at, "sensitive planned value does not match config value")
	case prior.IsNull():
		p.add(at, "planned value %s does not match config value %s", show(planned), show(config))
	case quiet:
		p.add(at, "sensitive planned value does not match config value nor prior value")
	default:
		p.add(at, "planned value %s does not match config value %s nor prior value %s", show(planned), show(config),
			show(prior))
	}
}

func (p *problems) checkNestedAttribute(a *schema.Attribute, prior, config, planned cty.Value, at *pathBuilder,
	secret secrets) {
	switch {
	case planned.IsNull():
		p.add(at, "planned for absence but config wants existence")
		return
	case !planned.IsKnown():
		p.add(at, "planned unknown for configured value")
		return
	case !config.IsKnown():
		// As for an attribute without nested ones, an unknown configuration must stay unknown in the plan.
		p.add(at, "planned value does not match config value, which is not known yet")
		return
	}
	element := func(prior, config, planned cty.Value, at *pathBuilder) {
		switch {
		case unrefined(planned).RawEquals(unrefined(config)):
		case !p.bothPresent(config, planned, at):
		case !planned.IsKnown():
			p.add(at, "planned unknown for configured value")
		case config.IsKnown():
			p.checkAttributes(a.Nested.Attributes, prior, config, planned, at, secret)
		default:
			p.add(at, "planned value does not match config value, which is not known yet")
		}
	}
	p.checkElements(a.Nested.Nesting, prior, config, planned, at, "element", element)
}

func (p *problems) checkNestedBlock(nb *schema.NestedBlock, prior, config, planned cty.Value, at *pathBuilder,
	secret secrets) {
	switch {
	case planned.RawEquals(config):
		return
	case !config.IsKnown():
		p.add(at, "planned value for a block that is not known yet")
		return
	case !planned.IsKnown():
		p.add(at, "attribute representing nested block must not be unknown itself; set nested attribute values to unknown instead")
		return
	}
	element := func(prior, config, planned cty.Value, at *pathBuilder) {
		switch {
		case planned.IsKnown() && config.IsKnown():
			p.checkBlock(nb.Block, prior, config, planned, at, secret)
		case !planned.IsKnown() && config.IsKnown():
			p.add(at, "element representing nested block must not be unknown itself; set nested attribute values to unknown instead")
		case planned.IsKnown():
			p.add(at, "planned value for a block that is not known yet")
		}
	}
	if nb.Nesting != schema.NestingSingle && nb.Nesting != schema.NestingGroup {
		if planned.IsNull() {
			p.add(at, "attribute representing nested blocks must be empty to indicate no blocks, not null")
			return
		}
		if nb.Nesting == schema.NestingSet {
			// Elements of a set have no identity, and may combine prior and configured values. So there is only this
			// check.
			for it := planned.ElementIterator(); it.Next(); {
				k, e := it.Element()
				if !e.IsKnown() && config.IsWhollyKnown() {
					p.add(at.index(k), "element representing nested block must not be unknown itself; set nested attribute values to unknown instead")
				}
			}
			return
		}
	}
	p.checkElements(nb.Nesting, prior, config, planned, at, "block", element)
}

// CheckWriteOnly reports where a planned or actual state holds a write-only value. A provider must not return one,
// since states are stored.
func CheckWriteOnly(block *schema.Block, state cty.Value) []error {
	var p problems
	p.checkWriteOnly(nestedBlock{block}, schema.NestingSingle, lang.WithoutMarks(state), nil)
	return p
}

func (p *problems) checkWriteOnly(n nestedSchema, nesting schema.Nesting, v cty.Value, at *pathBuilder) {
	switch {
	case v.IsNull() || !v.IsKnown():
		return
	case nesting != schema.NestingSingle && nesting != schema.NestingGroup:
		for it := v.ElementIterator(); it.Next(); {
			k, e := it.Element()
			p.checkWriteOnly(n, schema.NestingSingle, e, at.index(k))
		}
		return
	}
	for _, a := range n.attributes() {
		inner := v.GetAttr(a.Name)
		switch {
		case a.WriteOnly && !inner.IsNull():
			p.add(at.attr(a.Name), "write-only value in a state, where it must be null")
		case a.Nested != nil:
			p.checkWriteOnly(nestedObject{a.Nested}, a.Nested.Nesting, inner, at.attr(a.Name))
		}
	}
	for _, nb := range n.blocks() {
		p.checkWriteOnly(nestedBlock{nb.Block}, nb.Nesting, v.GetAttr(nb.TypeName), at.attr(nb.TypeName))
	}
}

// checkElements pairs the elements by index or key and calls element for each triple.
func (p *problems) checkElements(nesting schema.Nesting, prior, config, planned cty.Value, at *pathBuilder, noun string,
	element func(prior, config, planned cty.Value, at *pathBuilder)) {
	switch nesting {
	case schema.NestingList:
		plannedVals, configVals, priorVals := slice(planned), slice(config), slice(prior)
		if len(plannedVals) != len(configVals) {
			p.add(at, "%s count in plan (%d) disagrees with count in config (%d)", noun, len(plannedVals),
				len(configVals))
			return
		}
		for i, v := range plannedVals {
			element(elementAt(priorVals, i, v.Type()), configVals[i], v, at.index(cty.NumberIntVal(int64(i))))
		}
	case schema.NestingMap:
		plannedVals, configVals, priorVals := valueMap(planned), valueMap(config), valueMap(prior)
		for _, k := range slices.Sorted(maps.Keys(plannedVals)) {
			c, ok := configVals[k]
			if !ok {
				p.add(at, "%s key %q from plan is not present in config", noun, k)
				continue
			}
			before, ok := priorVals[k]
			if !ok {
				before = cty.NullVal(plannedVals[k].Type())
			}
			element(before, c, plannedVals[k], at.index(cty.StringVal(k)))
		}
		for _, k := range slices.Sorted(maps.Keys(configVals)) {
			if _, ok := plannedVals[k]; !ok {
				p.add(at, "%s key %q from config is not present in plan", noun, k)
			}
		}
	case schema.NestingSet:
		if n, m := planned.Length(), config.Length(); n.IsKnown() && m.IsKnown() && n.Equals(m).False() {
			p.add(at, "%s count in plan (%s) disagrees with count in config (%s)", noun, show(n), show(m))
		}
	default:
		element(prior, config, planned, at)
	}
}

func slice(v cty.Value) []cty.Value {
	if v.IsNull() || !v.IsKnown() {
		return nil
	}
	return v.AsValueSlice()
}

func valueMap(v cty.Value) map[string]cty.Value {
	if v.IsNull() || !v.IsKnown() {
		return nil
	}
	return v.AsValueMap()
}

func elementAt(vals []cty.Value, i int, ty cty.Type) cty.Value {
	if i < len(vals) {
		return vals[i]
	}
	return cty.NullVal(ty)
}
