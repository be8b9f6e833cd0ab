package diff

import (
	"fmt"
	"strings"

	"github.com/hykube/hykube/api/v1alpha1"
)

// Change writes one change in full, with a blank line after it; a change that does nothing is written as nothing.
func Change(c *v1alpha1.PlanChange, style Style) string {
	if c.Action == v1alpha1.ActionNoOp {
		return ""
	}
	p := &printer{style: style, replace: replacePaths(c)}
	for _, line := range heading(c, style) {
		p.raw("  " + line)
	}
	sym := Symbol(c.Action)
	p.raw(fmt.Sprintf("%s resource %q %q {", padSymbol(style, sym), c.Type, c.Object.Name))
	b, a := before(c), after(c)
	switch c.Action {
	case v1alpha1.ActionCreate:
		p.attributes(6, "+", nil, a, "", true)
	case v1alpha1.ActionDelete:
		p.attributes(6, "-", b, nil, "", true)
	default:
		mark := p.b.Len()
		shown := p.attributes(6, "~", b, a, "", true)
		if shown == 0 {
			if names := secretNames(b, a, ""); len(names) > 0 && c.Action == v1alpha1.ActionUpdate {
				rest := p.b.String()[mark:]
				head := p.b.String()[:mark]
				p.b.Reset()
				p.b.WriteString(head)
				p.line(6, "", style.Dim("# the change is in a secret value: "+strings.Join(names, ", ")))
				p.b.WriteString(rest)
			}
		}
	}
	p.raw("    }")
	p.raw("")
	return p.b.String()
}

// Symbol is the sign of an action, as in Terraform's legend.
func Symbol(a v1alpha1.Action) string {
	switch a {
	case v1alpha1.ActionCreate:
		return "+"
	case v1alpha1.ActionUpdate, v1alpha1.ActionRead:
		return "~"
	case v1alpha1.ActionReplace:
		return "-/+"
	case v1alpha1.ActionDelete:
		return "-"
	}
	return " "
}

// padSymbol puts a symbol into the first three columns, right aligned, as Terraform does.
func padSymbol(style Style, sym string) string {
	return strings.Repeat(" ", max(0, 3-len(sym))) + style.symbol(sym)
}

// heading is the comment above a change: what will happen and, when it is not plain from the diff, why.
func heading(c *v1alpha1.PlanChange, style Style) []string {
	// word is the part of the sentence that must not be overlooked.
	var verb, word, rest string
	switch c.Action {
	case v1alpha1.ActionCreate:
		verb = "will be created"
	case v1alpha1.ActionUpdate:
		verb = "will be updated in-place"
	case v1alpha1.ActionReplace:
		verb, word = "must be ", "replaced"
		switch c.ActionReason {
		case "replace_by_request":
			verb, rest = "will be ", ", as requested"
		case "replace_because_tainted":
			verb = "is tainted, so it must be "
		}
	case v1alpha1.ActionDelete:
		verb, word = "will be ", "destroyed"
	case v1alpha1.ActionRead:
		verb = "has changed; its record will be brought up to date"
		if c.After == nil {
			verb = "is gone; its record will be removed"
		}
	}
	lines := []string{style.Bold("# "+Clean(c.Address, false)+" "+verb) + style.paint(sgrBold+";"+sgrRed, word) + style.Bold(rest)}
	if why := reasonText(c.ActionReason); why != "" {
		lines = append(lines, style.Dim("# ("+why+")"))
	}
	for _, d := range c.Diagnostics {
		lines = append(lines, style.Yellow("# "+strings.ToLower(string(d.Severity))+": ")+Clean(d.Summary, false))
	}
	return lines
}

// reasonText puts a reason of Terraform's JSON plan into words, where the heading doesn't say it already.
func reasonText(reason string) string {
	switch reason {
	case "", "replace_because_cannot_update", "replace_by_request", "replace_because_tainted", "delete_because_requested":
		return ""
	case "delete_because_no_resource_config":
		return "because its object was deleted"
	case "replace_by_triggers":
		return "because of a change that its lifecycle.replaceTriggeredBy names"
	}
	return strings.ReplaceAll(Clean(reason, false), "_", " ")
}

// secretNames are the paths of the secret values on either side: when nothing else differs, one of them does.
func secretNames(b, a any, path string) []string {
	if _, ok := a.(sensitive); ok {
		return []string{path}
	}
	if _, ok := b.(sensitive); ok {
		return []string{path}
	}
	bm, _ := b.(map[string]any)
	am, _ := a.(map[string]any)
	var out []string
	for _, k := range unionKeys(bm, am) {
		out = append(out, secretNames(bm[k], am[k], join(path, k))...)
	}
	return out
}
