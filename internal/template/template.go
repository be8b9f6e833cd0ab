// Package template reads references and constants from the templates of objects, without a schema and without
// evaluating calls.
package template

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/api/v1alpha1"
)

// Reference is a traversal in an expression. subject is the part that names the object; steps is the rest.
type Reference struct {
	subject hcl.Traversal
	steps   hcl.Traversal
}

// traversed splits a traversal after its address: sim_network.main, data.sim_image.base, configmap.app, and any of
// these in another namespace.
func traversed(t hcl.Traversal) Reference {
	n := 0
	root := func() string {
		if n < len(t) {
			return stepName(t[n])
		}
		return ""
	}
	if root() == "namespace" {
		n += 2
	}
	switch v1alpha1.Mode(root()) {
	case v1alpha1.ModeData, v1alpha1.ModeEphemeral, v1alpha1.ModeAction:
		n++
	}
	if root() == "self" {
		n--
	}
	n = min(n+2, len(t))
	return Reference{t[:n], t[n:]}
}

// Subject returns the names in the address, such as "data", "sim_image" and "base". A numeric index gives an empty
// name.
func (r Reference) Subject() []string {
	var names []string
	for _, step := range r.subject {
		names = append(names, stepName(step))
	}
	return names
}

// Parse parses a reference without the enclosing template. ok is false if s is not a reference.
func Parse(s string) (r Reference, ok bool) {
	traversal, diags := hclsyntax.ParseTraversalAbs([]byte(s), "", hcl.InitialPos)
	if diags.HasErrors() {
		return Reference{}, false
	}
	return traversed(traversal), true
}

// Names returns the reference and its prefixes up to the address of the resource, as Terraform's JSON lists them.
func (r Reference) Names() []string {
	var out []string
	for n := len(r.steps); n >= 0; n-- {
		out = append(out, traversalText(r.subject)+traversalText(r.steps[:n]))
	}
	return out
}

func traversalText(t hcl.Traversal) string {
	var b strings.Builder
	for _, step := range t {
		switch s := step.(type) {
		case hcl.TraverseRoot:
			b.WriteString(s.Name)
		case hcl.TraverseAttr:
			b.WriteString("." + s.Name)
		case hcl.TraverseIndex:
			switch {
			case s.Key.Type() == cty.String:
				fmt.Fprintf(&b, "[%q]", s.Key.AsString())
			case s.Key.Type() == cty.Number:
				fmt.Fprintf(&b, "[%s]", s.Key.AsBigFloat().Text('f', -1))
			}
		}
	}
	return b.String()
}

// stepName returns the name of a step, or "" for a number.
func stepName(step hcl.Traverser) string {
	switch s := step.(type) {
	case hcl.TraverseRoot:
		return s.Name
	case hcl.TraverseAttr:
		return s.Name
	case hcl.TraverseIndex:
		if s.Key.Type() == cty.String {
			return s.Key.AsString()
		}
	}
	return ""
}

// Evaluate returns the references in a value with templates, in order, or its constant value. ok is false if the value
// is not constant.
func Evaluate(v any) (refs []Reference, constant any, ok bool) {
	switch v := v.(type) {
	case map[string]any:
		out, all := make(map[string]any, len(v)), true
		for _, k := range slices.Sorted(maps.Keys(v)) {
			keyRefs, key, keyOK := evaluateTemplate(k)
			r, c, ok := Evaluate(v[k])
			refs, all = append(append(refs, keyRefs...), r...), all && ok && keyOK
			out[fmt.Sprint(key)] = c
		}
		return refs, out, all
	case []any:
		out, all := make([]any, len(v)), true
		for i, e := range v {
			r, c, ok := Evaluate(e)
			refs, all, out[i] = append(refs, r...), all && ok, c
		}
		return refs, out, all
	case string:
		return evaluateTemplate(v)
	}
	return nil, v, true
}

// largestTemplate is the maximum length of a template in bytes, as in the server.
const largestTemplate = 128 << 10

func evaluateTemplate(s string) (refs []Reference, constant any, ok bool) {
	if !strings.Contains(s, "${") && !strings.Contains(s, "%{") || len(s) > largestTemplate {
		return nil, s, true
	}
	expr, diags := hclsyntax.ParseTemplate([]byte(s), "", hcl.InitialPos)
	if diags.HasErrors() {
		return nil, nil, false // the server reports the error
	}
	for _, t := range expr.Variables() {
		refs = append(refs, traversed(t))
	}
	if len(refs) > 0 {
		return refs, nil, false
	}
	value, diags := expr.Value(nil)
	if diags.HasErrors() || !value.IsWhollyKnown() || value.IsNull() {
		return nil, nil, false
	}
	switch value.Type() {
	case cty.String:
		return nil, value.AsString(), true
	case cty.Bool:
		return nil, value.True(), true
	case cty.Number:
		return nil, json.Number(value.AsBigFloat().Text('f', -1)), true
	}
	return nil, nil, false
}
