package shape

import (
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// planner plans one change as a provider should. Configured values stay. Computed values are known, kept or unknown, as
// their Fill says.
type planner struct {
	legacy bool
	// changed is true if something changes, so that Volatile values change, too.
	changed bool
}

// plan plans an object, and returns the paths that force a replace.
func (s *Shape) plan(legacy bool, prior, config, proposed tftypes.Value) (planned tftypes.Value, replace []*tftypes.AttributePath) {
	t := s.Block.ObjectType()
	p := &planner{legacy: legacy}
	planned = p.block(s.Block, prior, config, proposed, false)
	if prior.IsNull() {
		return planned, nil
	}
	if shown(planned, t) != shown(prior, t) {
		p.changed = true
		planned = p.block(s.Block, prior, config, proposed, false)
	}
	return planned, forcing(s.Block, tftypes.NewAttributePath(), prior, planned)
}

// block plans one object. In a set, the prior object is not known, so prior and config are null.
func (p *planner) block(b *Block, prior, config, proposed tftypes.Value, inSet bool) tftypes.Value {
	if absent(proposed) {
		return proposed
	}
	before, wanted, out := fields(prior), fields(config), fields(proposed)
	for _, a := range b.Attributes {
		out[a.Name] = p.attribute(a, before[a.Name], wanted[a.Name], out[a.Name], before == nil, inSet)
	}
	for _, n := range b.Blocks {
		out[n.Name] = p.nested(n.Mode, n.Block, before[n.Name], wanted[n.Name], out[n.Name], inSet)
	}
	return tftypes.NewValue(proposed.Type(), out)
}

// attribute plans one attribute. fresh is true if the object around it does not exist yet.
func (p *planner) attribute(a *Attribute, prior, config, proposed tftypes.Value, fresh, inSet bool) tftypes.Value {
	t := a.ValueType()
	if inSet {
		config = proposed
	}
	switch {
	case a.WriteOnly:
		return tftypes.NewValue(t, nil)
	case a.Computed && config.IsNull():
		switch {
		case a.Fill == Default:
			return invent(t, "default of "+a.Name)
		case a.Fill == Nothing && !fresh && proposed.IsNull():
			return proposed
		case proposed.IsNull(), a.Fill == Volatile && p.changed && !inSet:
			return tftypes.NewValue(t, unknown)
		}
		return proposed
	case a.Type == nil:
		return p.nested(a.Mode, &Block{Attributes: a.Attributes}, prior, config, proposed, inSet)
	case p.legacy && proposed.IsKnown():
		return a.Quirk.planned(t, prior, proposed)
	}
	return proposed
}

func (p *planner) nested(mode Mode, b *Block, prior, config, proposed tftypes.Value, inSet bool) tftypes.Value {
	if absent(proposed) {
		return proposed
	}
	switch mode {
	case Single, Group:
		return p.block(b, prior, config, proposed, inSet)
	case Map:
		before, wanted, out := fields(prior), fields(config), fields(proposed)
		for key, e := range out {
			out[key] = p.block(b, before[key], wanted[key], e, inSet)
		}
		return tftypes.NewValue(proposed.Type(), out)
	}
	before, wanted, out := elements(prior), elements(config), elements(proposed)
	for i, e := range out {
		if mode == Set {
			out[i] = p.block(b, tftypes.Value{}, tftypes.Value{}, e, true)
		} else {
			out[i] = p.block(b, at(before, i), at(wanted, i), e, inSet)
		}
	}
	return tftypes.NewValue(proposed.Type(), out)
}

func at(l []tftypes.Value, i int) tftypes.Value {
	if i < len(l) {
		return l[i]
	}
	return tftypes.Value{}
}

// planned returns the value that the legacy type system plans for a known value.
func (q Quirk) planned(t tftypes.Type, prior, proposed tftypes.Value) tftypes.Value {
	nothing := zero(t)
	isZero := shown(proposed, t) == shown(nothing, t)
	switch {
	case q == Zero && proposed.IsNull():
		return nothing
	case q == Null && isZero && !t.Is(tftypes.Bool):
		return tftypes.NewValue(t, nil)
	case q == Lower && t.Is(tftypes.String) && !proposed.IsNull():
		return tftypes.NewValue(t, lower(text(proposed)))
	case q == Suppress && t.Is(tftypes.String) && !absent(prior) && !proposed.IsNull() && lower(text(prior)) == lower(text(proposed)):
		return prior
	case q == Late && proposed.IsNull() && !absent(prior) && shown(prior, t) == shown(nothing, t):
		return prior
	}
	return proposed
}

// forcing returns the paths of changes that force a replace.
func forcing(b *Block, path *tftypes.AttributePath, prior, planned tftypes.Value) (out []*tftypes.AttributePath) {
	if absent(prior) || absent(planned) {
		return nil
	}
	before, after := fields(prior), fields(planned)
	for _, a := range b.Attributes {
		here, t := path.WithAttributeName(a.Name), a.ValueType()
		switch {
		case a.WriteOnly:
		case a.ForcesNew && shown(before[a.Name], t) != shown(after[a.Name], t):
			out = append(out, here)
		case a.Type == nil:
			out = append(out, forcingNested(a.Mode, &Block{Attributes: a.Attributes}, here, before[a.Name], after[a.Name])...)
		}
	}
	for _, n := range b.Blocks {
		out = append(out, forcingNested(n.Mode, n.Block, path.WithAttributeName(n.Name), before[n.Name], after[n.Name])...)
	}
	return out
}

func forcingNested(mode Mode, b *Block, path *tftypes.AttributePath, prior, planned tftypes.Value) (out []*tftypes.AttributePath) {
	switch mode {
	case Single, Group:
		return forcing(b, path, prior, planned)
	case Map:
		before, after := fields(prior), fields(planned)
		for _, key := range sortedKeys(before) {
			out = append(out, forcing(b, path.WithElementKeyString(key), before[key], after[key])...)
		}
	case List:
		before, after := elements(prior), elements(planned)
		for i := range min(len(before), len(after)) {
			out = append(out, forcing(b, path.WithElementKeyInt(i), before[i], after[i])...)
		}
	}
	return out // a path cannot address an element of a set
}

// complete replaces the unknown values in a planned object.
func (s *Shape) complete(legacy bool, planned tftypes.Value, id string) (tftypes.Value, error) {
	return tftypes.Transform(planned, func(path *tftypes.AttributePath, v tftypes.Value) (tftypes.Value, error) {
		a, place := s.attributeAt(path)
		switch {
		case a == nil && v.IsKnown():
		case !v.IsKnown() && len(path.Steps()) == 1 && a.Name == s.Key:
			return tftypes.NewValue(tftypes.String, id), nil
		case !v.IsKnown() && a != nil && a.Fill == Nothing:
			return tftypes.NewValue(v.Type(), nil), nil
		case !v.IsKnown():
			return invent(v.Type(), id+place), nil
		case legacy && a.Quirk == Late && v.IsNull():
			return zero(v.Type()), nil
		}
		return v, nil
	})
}

// attributeAt returns the attribute at the end of a path; nil if the path ends within an attribute or at a block. place
// is the path without the elements of sets.
func (s *Shape) attributeAt(path *tftypes.AttributePath) (a *Attribute, place string) {
	b := s.Block
	for _, step := range path.Steps() {
		switch step := step.(type) {
		case tftypes.AttributeName:
			place += "." + string(step)
			if b == nil {
				return nil, place
			}
			var n *Nested
			a, n = find(b, string(step))
			switch {
			case n != nil:
				b = n.Block
			case a != nil && a.Type == nil:
				b = &Block{Attributes: a.Attributes}
			default:
				b = nil
			}
			continue
		case tftypes.ElementKeyInt, tftypes.ElementKeyString:
			place += "." + marshal(step)
		}
		a = nil
	}
	return a, place
}
