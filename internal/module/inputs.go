package module

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
)

// This file reads values of variables where Terraform reads them: files such as terraform.tfvars, and texts such as
// those of -var and TF_VAR_name.

// ReadVariableFile reads the values in a file with variables. The result has the form of Inputs.Values.
func ReadVariableFile(name string, content []byte) (map[string]any, diag.Diagnostics) {
	if len(content) > maxConfigFile {
		return nil, diag.Diagnostics{diag.Errorf(name, "File too large", "The file has %d bytes, and the limit is %d.",
			len(content), maxConfigFile)}
	}
	body, diags := parseFile(name, content)
	if body == nil {
		return nil, diags
	}
	d := &decoder{converter: converter{files: Files{name: content}, positions: Positions{}, diags: diags}}
	attrs, found := body.JustAttributes()
	d.note(found)
	out := make(map[string]any, len(attrs))
	for _, key := range sortedKeys(attrs) {
		if v, ok := d.literal(attrs[key].Expr); ok {
			out[key] = jsonOf(v)
		}
	}
	return out, sorted(d.diags)
}

// ReadVariableText reads the value of a variable from a text: as it is if the variable has a simple type or none, and
// otherwise as an expression. name says where the text comes from. The result has the form of Inputs.Values.
func (v *Variable) ReadVariableText(name, text string) (any, diag.Diagnostics) {
	if v.written.ty == nil || v.Type.IsPrimitiveType() {
		return lang.EscapeTemplate(text), nil
	}
	tokens, _ := hclsyntax.LexExpression([]byte(text), name, hcl.InitialPos) // the parser reports the same problems
	if len(text) > maxConfigFile || !shallow(tokens) {
		return nil, tooDeep(name)
	}
	d := &decoder{converter: converter{files: Files{name: []byte(text)}, positions: Positions{}}}
	e, diags := hclsyntax.ParseExpression([]byte(text), name, hcl.InitialPos)
	d.note(diags)
	if diags.HasErrors() {
		return nil, d.diags
	}
	value, ok := d.literal(e)
	if !ok || value == cty.NilVal {
		return nil, d.diags
	}
	return jsonOf(value), d.diags
}
