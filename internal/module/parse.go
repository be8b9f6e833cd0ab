package module

import (
	"path"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/json"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
)

// Limits on the nesting of a file. Beyond them, the parser's recursion could exhaust the stack.
const (
	maxDepth = 200
	// maxOperators is the number of operators of one expression outside of brackets.
	maxOperators = 10_000
)

// warning returns a warning about a field.
func warning(field, summary, format string, args ...any) v1alpha1.Diagnostic {
	d := diag.Errorf(field, summary, format, args...)
	d.Severity = v1alpha1.SeverityWarning
	return d
}

// parseFile parses a configuration file. The body is nil after an error.
func parseFile(name string, content []byte) (hcl.Body, diag.Diagnostics) {
	if strings.HasSuffix(path.Base(name), ".json") {
		if !shallowJSON(content) {
			return nil, tooDeep(name)
		}
		file, diags := json.Parse(content, name)
		return bodyOf(file, diags), fromHCL(diags)
	}
	tokens, diags := hclsyntax.LexConfig(content, name, hcl.InitialPos)
	if diags.HasErrors() {
		return nil, fromHCL(diags)
	}
	if !shallow(tokens) {
		return nil, tooDeep(name)
	}
	file, diags := hclsyntax.ParseConfig(content, name, hcl.InitialPos)
	return bodyOf(file, diags), fromHCL(diags)
}

func bodyOf(file *hcl.File, diags hcl.Diagnostics) hcl.Body {
	if diags.HasErrors() || file == nil {
		return nil
	}
	return file.Body
}

func tooDeep(name string) diag.Diagnostics {
	return diag.Diagnostics{diag.Errorf(place(name, 1, 1), "File too complex",
		"An expression has more than %d nested brackets, or more than %d operators in a row. Split it into local values.", maxDepth, maxOperators)}
}

// shallow reports whether the brackets and operators of a file are within the limits.
func shallow(tokens hclsyntax.Tokens) bool {
	var open []hclsyntax.TokenType
	operators := 0
	for _, t := range tokens {
		switch t.Type {
		case hclsyntax.TokenOBrace, hclsyntax.TokenOBrack, hclsyntax.TokenOParen, hclsyntax.TokenOQuote,
			hclsyntax.TokenOHeredoc,
			hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl:
			open = append(open, t.Type)
			operators = 0
		case hclsyntax.TokenCBrace, hclsyntax.TokenCBrack, hclsyntax.TokenCParen, hclsyntax.TokenCQuote,
			hclsyntax.TokenCHeredoc,
			hclsyntax.TokenTemplateSeqEnd:
			open = open[:max(0, len(open)-1)]
		case hclsyntax.TokenNewline:
			if len(open) == 0 || open[len(open)-1] == hclsyntax.TokenOBrace {
				operators = 0
			}
		case hclsyntax.TokenIdent, hclsyntax.TokenNumberLit, hclsyntax.TokenComma, hclsyntax.TokenStringLit,
			hclsyntax.TokenQuotedLit, hclsyntax.TokenComment:
		default:
			operators++
		}
		if len(open) > maxDepth || operators > maxOperators {
			return false
		}
	}
	return true
}

// shallowJSON reports whether the brackets of a file are within the limits, also those in a string, which may be an
// expression.
func shallowJSON(content []byte) bool {
	depth, inString, operators, quoted := 0, 0, 0, false
	for i := 0; i < len(content); i++ {
		c, escaped := content[i], false
		if quoted && c == '\\' && i+1 < len(content) {
			i++
			c, escaped = content[i], true
			if r, err := strconv.ParseUint(string(content[i+1:min(i+5, len(content))]), 16, 16); c == 'u' &&
				err == nil {
				c, i = byte(min(r, 0xff)), i+4
			}
		}
		switch {
		case c == '"' && !escaped:
			quoted = !quoted
			inString, operators = 0, 0
		case quoted && strings.IndexByte("([{", c) >= 0:
			inString++
		case quoted && strings.IndexByte(")]}", c) >= 0:
			inString = max(0, inString-1)
		case quoted && strings.IndexByte("!?-+*/%<>=&|", c) >= 0:
			operators++
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		}
		if depth > maxDepth || inString > maxDepth || operators > maxOperators {
			return false
		}
	}
	return true
}
