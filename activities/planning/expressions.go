package planning

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/contributor"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/plan"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/store"

	"github.com/zclconf/go-cty/cty"
	"k8s.io/apimachinery/pkg/runtime"
)

// This file notes the expressions behind the values of a change, so that an approver sees what a value will follow.

// Limits of the expressions of a change.
const (
	maxExpressions = 64
	maxExpression  = 200
)

// noteExpressions notes the expressions whose values differ, and those that were rewritten since the last apply.
func (pr *proposal) noteExpressions(c *ledger.Change, r *resource.Resource, rec *ledger.Instance, prior,
	planned cty.Value) error {
	for _, t := range r.Templates() {
		rewritten := t.Rewritten(rec.Expressions)
		if !rewritten && !differAt(prior, planned, t.Path) {
			continue
		}
		if len(c.Expressions) == maxExpressions {
			return nil
		}
		path, err := plan.RenderPath(t.Path)
		if err != nil {
			return fmt.Errorf("render change of %s: %w", c.Address, err)
		}
		c.Expressions = append(c.Expressions, v1alpha1.PlanExpression{
			Path: &runtime.RawExtension{Raw: path}, Expression: shorten(pr.scope.Mask(t.Shown()), maxExpression),
			Rewritten: rewritten, By: writersOf(c, &t, rewritten),
		})
	}
	return nil
}

// differAt reports whether two values differ at a path, or at its longest part that both have.
func differAt(a, b cty.Value, path cty.Path) bool {
	a, b = lang.WithoutMarks(a), lang.WithoutMarks(b)
	for _, step := range path {
		x, okA := stepInto(a, step)
		y, okB := stepInto(b, step)
		if !okA || !okB {
			break
		}
		a, b = x, y
	}
	return !a.RawEquals(b)
}

// stepInto returns the part of a value to which a step of a resource.Template leads.
func stepInto(v cty.Value, step cty.PathStep) (cty.Value, bool) {
	if v.IsNull() || !v.IsKnown() {
		return cty.NilVal, false
	}
	ty := v.Type()
	switch s := step.(type) {
	case cty.GetAttrStep:
		if ty.IsObjectType() && ty.HasAttribute(s.Name) {
			return v.GetAttr(s.Name), true
		}
		if key := cty.StringVal(s.Name); ty.IsMapType() && v.HasIndex(key).True() {
			return v.Index(key), true
		}
	case cty.IndexStep:
		if (ty.IsListType() || ty.IsTupleType()) && v.HasIndex(s.Key).True() {
			return v.Index(s.Key), true
		}
	}
	return cty.NilVal, false
}

// writersOf returns the names of the contributors of a change who wrote an expression or what it refers to.
func writersOf(c *ledger.Change, t *resource.Template, rewritten bool) []string {
	set := store.Written{Kind: v1alpha1.OwnerKind(c.Object.Name), Name: c.Object.Set}.String() + ": "
	wrote := map[string]bool{v1alpha1.WroteSpec: rewritten}
	for _, ref := range t.References {
		object := ref.Address.String()
		switch {
		case !ref.Stored():
		case ref.Type == lang.TypeSecret:
			object = store.Written{Kind: "Secret", Name: ref.Name}.String()
		default:
			object = store.Written{Kind: "ConfigMap", Name: ref.Name}.String()
		}
		wrote[object], wrote[object+": "+ref.Attribute] = true, true
	}
	var by []v1alpha1.Contributor
	for _, of := range c.Contributors {
		if slices.ContainsFunc(of.Wrote,
			func(part string) bool { return wrote[part] || rewritten && strings.HasPrefix(part, set) }) {
			by = append(by, of)
		}
	}
	return contributor.Names(by)
}

// shorten shortens a text to a number of bytes.
func shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	const ellipsis = "…"
	return strings.ToValidUTF8(text[:most-len(ellipsis)], "") + ellipsis
}
