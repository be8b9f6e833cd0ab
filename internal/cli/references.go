package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hykube/hykube/api/v1alpha1"
)

// reference is an address that an object names. sure is true where it stands as an address, and false where it stands in
// an expression.
type reference struct {
	address string
	sure    bool
}

// references are the addresses of objects that an object refers to, in spec and lifecycle.
func references(u *unstructured.Unstructured) []reference {
	seen := map[string]bool{}
	var out []reference
	add := func(a string, sure bool) {
		if !seen[a] {
			seen[a] = true
			out = append(out, reference{a, sure})
		}
	}
	lifecycle, _ := u.Object["lifecycle"].(map[string]any)
	for _, v := range []any{u.Object["spec"], lifecycle} {
		refs, _, _ := evaluate(v)
		for _, r := range refs {
			if t, ok := r.target(); ok {
				add(t.full(), false)
			}
		}
	}
	list := func(field string) []string {
		l, _, _ := unstructured.NestedStringSlice(lifecycle, field)
		return l
	}
	for _, s := range list("replaceTriggeredBy") { // it may go on with an attribute
		traversal, diags := hclsyntax.ParseTraversalAbs([]byte(s), "", hcl.InitialPos)
		if diags.HasErrors() {
			continue
		}
		if t, ok := traversed(traversal).target(); ok {
			add(t.full(), true)
		}
	}
	for _, s := range list("dependsOn") {
		if t, err := parseTarget(s); err == nil {
			add(t.full(), true)
		}
	}
	return out
}

// mention is a traversal in an expression: what is referred to, and the steps into it.
type mention struct {
	subject hcl.Traversal
	steps   hcl.Traversal
}

// traversed splits a traversal where its address ends: sim_network.main, data.sim_image.base, configmap.app, and any of
// these in another namespace.
func traversed(t hcl.Traversal) mention {
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
	return mention{t[:n], t[n:]}
}

// target is the object of a provider's kind that is mentioned; ok is false for a ConfigMap, a Secret and self.
func (m mention) target() (t target, ok bool) {
	var names []string
	for _, step := range m.subject {
		names = append(names, stepName(step))
	}
	if len(names) > 2 && names[0] == "namespace" {
		t.namespace, names = names[1], names[2:]
	}
	t.mode = v1alpha1.ModeManaged
	if len(names) == 3 {
		t.mode, names = v1alpha1.Mode(names[0]), names[1:]
	}
	if len(names) != 2 || slices.Contains(names, "") || names[0] == "configmap" || names[0] == "secret" {
		return target{}, false
	}
	t.typ, t.name = names[0], names[1]
	return t, true
}

// unwrapped are the names of a mention as Terraform's JSON lists them, from the whole of it to the resource alone.
func (m mention) unwrapped() []string {
	var out []string
	for n := len(m.steps); n >= 0; n-- {
		out = append(out, written(m.subject)+written(m.steps[:n]))
	}
	return out
}

func written(t hcl.Traversal) string {
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

// stepName is the name of a step; empty for a number.
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

// evaluate is what a value with templates refers to, in the order in which it stands there, or the constant that it is;
// ok is false when it is no constant.
func evaluate(v any) (refs []mention, constant any, ok bool) {
	switch v := v.(type) {
	case map[string]any:
		out, all := make(map[string]any, len(v)), true
		for _, k := range slices.Sorted(maps.Keys(v)) {
			keyRefs, key, keyOK := evaluateTemplate(k)
			r, c, ok := evaluate(v[k])
			refs, all = append(append(refs, keyRefs...), r...), all && ok && keyOK
			out[fmt.Sprint(key)] = c
		}
		return refs, out, all
	case []any:
		out, all := make([]any, len(v)), true
		for i, e := range v {
			r, c, ok := evaluate(e)
			refs, all, out[i] = append(refs, r...), all && ok, c
		}
		return refs, out, all
	case string:
		return evaluateTemplate(v)
	}
	return nil, v, true
}

// largestTemplate is the largest text that the server takes for a template.
const largestTemplate = 128 << 10

func evaluateTemplate(s string) (refs []mention, constant any, ok bool) {
	if !strings.Contains(s, "${") && !strings.Contains(s, "%{") || len(s) > largestTemplate {
		return nil, s, true
	}
	expr, diags := hclsyntax.ParseTemplate([]byte(s), "", hcl.InitialPos)
	if diags.HasErrors() {
		return nil, nil, false // the server says what is wrong with it
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
