package cli

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// reference is an address that an object names. sure is true where it stands as an address, and false where
// it was only found by the look of an expression.
type reference struct {
	address string
	sure    bool
}

// traversal finds type.name.attribute in an expression. The server parses expressions for real; for drawing, its look
// is enough, and what looks like a reference without being one names no object, and so draws nothing.
var traversal = regexp.MustCompile(`\b(?:namespace\.[a-z0-9-]+\.)?(?:(?:data|ephemeral|action)\.)?[a-z][a-z0-9_]*\.[A-Za-z0-9_-]+\b`)

// references are the addresses that an object refers to, in spec and lifecycle.
func references(u *unstructured.Unstructured) []reference {
	seen := map[string]bool{}
	var out []reference
	add := func(a string, sure bool) {
		if !seen[a] {
			seen[a] = true
			out = append(out, reference{a, sure})
		}
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, x := range v {
				walk(x)
			}
		case []any:
			for _, x := range v {
				walk(x)
			}
		case string:
			for _, e := range expressions(v) {
				for _, m := range traversal.FindAllString(e, -1) {
					add(m, false)
				}
			}
		}
	}
	walk(u.Object["spec"])
	lifecycle, _ := u.Object["lifecycle"].(map[string]any)
	walk(lifecycle)
	deps, _ := lifecycle["dependsOn"].([]any)
	for _, d := range deps {
		if s, ok := d.(string); ok {
			if t, err := parseTarget(s); err == nil {
				add(t.full(), true)
			}
		}
	}
	return out
}

// expressions are the insides of the ${...} and %{...} of a template, without quoted text.
func expressions(s string) []string {
	var out []string
	for i := 0; i+1 < len(s); i++ {
		if (s[i] != '$' && s[i] != '%') || s[i+1] != '{' {
			continue
		}
		if i > 0 && s[i-1] == s[i] { // $${ is an escaped ${
			continue
		}
		depth, quoted := 1, false
		var b strings.Builder
		j := i + 2
		for ; j < len(s) && depth > 0; j++ {
			switch c := s[j]; {
			case quoted && c == '\\':
				j++
			case c == '"':
				quoted = !quoted
			case quoted:
			case c == '{':
				depth++
			case c == '}':
				depth--
			default:
				b.WriteByte(c)
			}
		}
		out = append(out, b.String())
		i = j - 1
	}
	return out
}
