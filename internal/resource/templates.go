package resource

import (
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"slices"
	"strings"

	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/schema"

	"github.com/zclconf/go-cty/cty"
)

// Template is an argument of a spec whose value follows from an expression.
type Template struct {
	// Path leads to the argument from the spec. Each name is a cty.GetAttrStep, also the key of a map.
	Path cty.Path
	// Text is the expression as in the spec, such as "web-${configmap.net.zone}".
	Text string
	// References are the references of the expression.
	References []lang.Reference
	// secret is true if the schema declares that the argument holds a secret.
	secret bool
}

// Templates returns the arguments of the spec with expressions, by their paths.
func (r *Resource) Templates() (out []Template) {
	add := func(path cty.Path, text string, secret bool) {
		if _, constant := lang.Constant(text); !constant {
			out = append(out, Template{Path: path.Copy(), Text: text, secret: secret})
		}
	}
	eachString(r.Spec(), nil, arguments{block: r.Schema.Block}, add)
	if len(out) == 0 {
		return nil
	}
	of := map[string][]lang.Reference{}
	for _, ref := range r.Parse().Config.References() {
		field, _, _ := strings.Cut(ref.Field, ", column ")
		of[field] = append(of[field], ref)
	}
	for i := range out {
		out[i].References = of[diag.PathField("spec", out[i].Path)]
	}
	return out
}

// Shown returns the expression for a person who reads a plan. The text of a secret argument is a secret, so its
// references take its place.
func (t *Template) Shown() string {
	if !t.secret {
		return t.Text
	}
	var refs []string
	for _, ref := range t.References {
		text := ref.Address.Expression()
		if ref.Attribute != "" {
			text += "." + ref.Attribute
		}
		refs = append(refs, "${"+text+"}")
	}
	return strings.Join(append(refs, "(sensitive expression)"), " ")
}

// Rewritten reports whether an object has the expression only since its last apply. applied are the results of
// TemplateDigests at that apply; nil if they are unknown.
func (t *Template) Rewritten(applied map[string]string) bool {
	return applied != nil && applied[diag.PathField("", t.Path)] != t.digest()
}

func (t *Template) digest() string {
	sum := sha256.Sum256([]byte(t.Text))
	return base64.RawStdEncoding.EncodeToString(sum[:6])
}

// TemplateDigests returns a digest of each expression of the spec, by its field; never nil.
func (r *Resource) TemplateDigests() map[string]string {
	out := map[string]string{}
	for _, t := range r.Templates() {
		out[diag.PathField("", t.Path)] = t.digest()
	}
	return out
}

// arguments are the arguments at one place of a schema: of a block, or of a nested attribute. The zero value has none.
type arguments struct {
	block  *schema.Block
	object *schema.Object
	secret bool
}

// of returns the arguments within the argument with a name.
func (a arguments) of(name string) arguments {
	var found *schema.Attribute
	switch {
	case a.block != nil:
		if nested := a.block.NestedBlock(name); nested != nil {
			return arguments{block: nested.Block, secret: a.secret}
		}
		found = a.block.Attribute(name)
	case a.object != nil:
		found = a.object.Attribute(name)
	}
	if found == nil { // the key of a map, such as a map of blocks
		return a
	}
	return arguments{object: found.Nested, secret: a.secret || found.Sensitive || found.WriteOnly}
}

// eachString calls do for each string of a JSON value.
func eachString(v any, path cty.Path, at arguments, do func(path cty.Path, text string, secret bool)) {
	switch v := v.(type) {
	case string:
		do(path, v, at.secret)
	case []any:
		for i, e := range v {
			eachString(e, path.IndexInt(i), at, do)
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			eachString(v[k], path.GetAttr(k), at.of(k), do)
		}
	}
}
