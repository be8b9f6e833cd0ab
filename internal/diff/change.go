package diff

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/hykube/hykube/api/v1alpha1"
)

// Quiet reports whether a change has no effect.
func Quiet(c *v1alpha1.PlanChange) bool {
	return c.Action == v1alpha1.ActionNoOp && !moves(c) && c.Importing == nil
}

// hidden reports whether a change is not rendered.
func hidden(c *v1alpha1.PlanChange) bool { return Quiet(c) && !rewrites(c) }

// rewrites reports whether the object of a change has an expression only since its last apply.
func rewrites(c *v1alpha1.PlanChange) bool {
	return slices.ContainsFunc(c.Expressions, func(e v1alpha1.PlanExpression) bool { return e.Rewritten })
}

// moves reports whether the change moves the record of another object to the resource.
func moves(c *v1alpha1.PlanChange) bool {
	return c.PreviousAddress != "" && c.PreviousAddress != c.Address
}

// Change renders one change in full, with a blank line after it. It returns "" for a change without an effect, unless
// its object has new expressions.
func Change(c *v1alpha1.PlanChange, style Style) string {
	if hidden(c) {
		return ""
	}
	p := &printer{style: style, replace: replacePaths(c), follows: expressions(c), whole: c.Importing != nil,
		record: c.Action == v1alpha1.ActionRead}
	for _, line := range heading(c, style) {
		p.raw("  " + line)
	}
	if c.Action == "" {
		p.raw("") // a change that could not be planned has no values
		return p.b.String()
	}
	p.raw(fmt.Sprintf("%s %s %q %q {", padSymbol(style, Symbol(c)), block(c.Mode), c.Type, templateName(c.Object.Name)))
	b, a := before(c), after(c)
	switch {
	case c.ValuesWithheld:
		p.raw(`      # (values withheld: you need the verb "get" on the object)`)
	case c.Action == v1alpha1.ActionCreate, readsData(c):
		p.attributes(6, "+", nil, a, "", true)
	case c.Action == v1alpha1.ActionDelete, c.Action == v1alpha1.ActionRead && a == nil:
		p.attributes(6, "-", b, nil, "", true)
	case c.Action == v1alpha1.ActionForget:
		p.attributes(6, "~", b, b, "", true)
	case c.Action == v1alpha1.ActionInvoke:
		p.attributes(6, "=", nil, a, "", true)
	default:
		p.attributes(6, "~", b, a, "", true)
		if paths := slices.Sorted(maps.Keys(p.replace)); len(paths) > 0 && p.shown == 0 {
			// Such as a path into a block that goes away as a whole.
			p.raw("      " + style.Red("# "+Clean(strings.Join(paths, ", "), false)+" forces replacement"))
		}
		for _, path := range slices.Sorted(maps.Keys(p.follows)) { // those of values without a line of their own
			p.raw("      " + style.Dim("# "+Clean(path, false)+" = "+p.follows[path]))
		}
	}
	p.raw("    }")
	p.raw("")
	return p.b.String()
}

// block returns the keyword of a block of the mode.
func block(m v1alpha1.Mode) string {
	if m == "" || m == v1alpha1.ModeManaged {
		return "resource"
	}
	return string(m)
}

// readsData reports whether the apply reads a data source.
func readsData(c *v1alpha1.PlanChange) bool {
	return c.Action == v1alpha1.ActionRead && c.Mode == v1alpha1.ModeData
}

// Symbol returns the symbol of a change, as in Terraform's legend.
func Symbol(c *v1alpha1.PlanChange) string {
	switch c.Action {
	case v1alpha1.ActionCreate:
		return "+"
	case v1alpha1.ActionUpdate:
		return "~"
	case v1alpha1.ActionRead:
		switch {
		case c.Mode == v1alpha1.ModeData:
			return "<="
		case decode(c.After) == nil:
			return "-"
		}
		return "~"
	case v1alpha1.ActionReplace:
		switch {
		case c.Forget:
			return "+/."
		case c.CreateBeforeDestroy:
			return "+/-"
		}
		return "-/+"
	case v1alpha1.ActionDelete:
		return "-"
	case v1alpha1.ActionForget:
		return "."
	case v1alpha1.ActionInvoke:
		return ">"
	}
	return " "
}

// padSymbol right-aligns a symbol in the first three columns, as Terraform does.
func padSymbol(style Style, sym string) string {
	return strings.Repeat(" ", max(0, 3-len(sym))) + style.symbol(sym)
}

// Name returns the address of a change, with the key of the deposed instance if it concerns one.
func Name(c *v1alpha1.PlanChange) string {
	name := Clean(c.Address, false)
	if c.Deposed != "" {
		name += " (deposed object " + Clean(c.Deposed, false) + ")"
	}
	return name
}

// heading returns the comment above a change: the action and, if the diff does not show it, the reason.
func heading(c *v1alpha1.PlanChange, style Style) []string {
	h := headlineOf(c)
	lines := []string{style.Bold("# "+h.name+" "+h.verb) + style.paint(sgrBold+";"+sgrRed, h.word) + style.Bold(h.rest)}
	note := func(text string) {
		if text != "" {
			lines = append(lines, style.Dim("# ("+text+")"))
		}
	}
	note(cmp.Or(h.why, reason(c)))
	if c.Blocked != "" {
		lines = append(lines, style.Red("# blocked: ")+Clean(c.Blocked, false))
	}
	if moves(c) && c.Action != v1alpha1.ActionNoOp {
		note("moved from " + Clean(c.PreviousAddress, false))
	}
	if c.Importing != nil {
		note("imported from " + importedFrom(c.Importing))
		if c.Action == v1alpha1.ActionReplace || c.Action == v1alpha1.ActionDelete {
			lines = append(lines, style.Yellow("# Warning: this will destroy the imported resource"))
		}
	}
	for _, text := range disclosures(c) {
		lines = append(lines, style.Yellow("# secrets: ")+text)
	}
	for _, d := range c.Diagnostics {
		lines = append(lines, style.Yellow("# "+strings.ToLower(string(d.Severity))+": ")+Clean(d.Summary, false))
	}
	return lines
}

// disclosures says which secrets of other objects the provider receives and does not have yet, and where it sends them.
func disclosures(c *v1alpha1.PlanChange) []string {
	var from []string
	for _, s := range c.Secrets {
		for _, object := range s.From {
			if object = Clean(object, false); s.Discloses && !slices.Contains(from, object) {
				from = append(from, object)
			}
		}
	}
	if len(from) == 0 {
		return nil
	}
	to := "the provider"
	if c.ProviderConfig != "" {
		to = "ProviderConfig " + strconv.Quote(Clean(c.ProviderConfig, false))
	}
	lines := []string{"values of " + strings.Join(from, ", ") + " go to " + to}
	for _, a := range c.ProviderArguments {
		lines = append(lines, "  "+Clean(a.Name, false)+" = "+strconv.Quote(Clean(a.Value, false)))
	}
	return lines
}

// headline is the first sentence about a change.
type headline struct {
	name, verb string
	// word is the highlighted part of the sentence, and rest is the part after it.
	word, rest string
	// why is the reason for the action, if it is not the action reason.
	why string
}

func headlineOf(c *v1alpha1.PlanChange) headline {
	h := headline{name: Name(c)}
	switch c.Action {
	case "":
		h.verb = "could not be planned"
		if c.State == v1alpha1.ChangeSkipped {
			h.verb, h.why = "is left as it is", Clean(c.Message, false)
		}
	case v1alpha1.ActionCreate:
		h.verb = "will be created"
	case v1alpha1.ActionUpdate:
		h.verb = "will be updated in-place"
	case v1alpha1.ActionReplace:
		h.verb, h.word = "must be ", "replaced"
		switch c.ActionReason {
		case "replace_by_request":
			h.verb, h.rest = "will be ", ", as requested"
		case "replace_because_tainted":
			h.verb = "is tainted, so it must be "
		case "replace_by_triggers":
			h.verb, h.rest = "will be ", ", due to changes in lifecycle.replaceTriggeredBy"
		}
		if c.Forget {
			h.rest += ", but the existing object will not be destroyed"
			h.why = "lifecycle.destroy is false"
		}
	case v1alpha1.ActionDelete:
		h.verb, h.word = "will be ", "destroyed"
		if c.Deposed != "" {
			h.why = "an earlier replacement did not destroy it"
		}
	case v1alpha1.ActionForget:
		h.verb, h.why = forgets(c)
	case v1alpha1.ActionInvoke:
		h.verb = "will be invoked"
	case v1alpha1.ActionRead:
		switch {
		case c.Mode == v1alpha1.ModeData:
			h.verb = "will be read during apply"
		case decode(c.After) == nil:
			h.verb = "is gone; its record will be removed"
		default:
			h.verb = "has changed; its record will be updated"
		}
	case v1alpha1.ActionNoOp:
		switch {
		case moves(c):
			h.name, h.verb = Clean(c.PreviousAddress, false), "has moved to "+h.name
		case c.Importing != nil:
			h.verb = "will be imported"
		default:
			h.verb, h.why = "will not be changed", "its object has new expressions, whose values are the same today"
		}
	}
	return h
}

// foundGone is the action reason if a plan removes the record of a resource that it did not find.
const foundGone = "forget_because_gone"

// FoundGone reports whether a change only removes the record of a resource that was not found.
func FoundGone(c *v1alpha1.PlanChange) bool {
	return c.Action == v1alpha1.ActionForget && c.ActionReason == foundGone
}

// forgets returns the phrase for the removal of a record and its reason.
func forgets(c *v1alpha1.PlanChange) (verb, why string) {
	switch c.ActionReason {
	case foundGone:
		return "is gone; its record will be removed", "it was not found"
	case "forget_because_not_found":
		return "may exist; its record will be removed, and nothing will be destroyed",
			"it is not found with the new arguments of its ProviderConfig"
	case "forget_because_create_unknown":
		return "may exist; its record will be removed, and nothing will be destroyed",
			"the outcome of its create is unknown"
	}
	return "will no longer be managed by Hykube, but will not be destroyed", whyForgets(c.ActionReason)
}

// whyForgets returns why infrastructure that exists is forgotten.
func whyForgets(reason string) string {
	switch reason {
	case v1alpha1.ActionReasonReleased:
		return "its Module is deleted, and has the mode Observe"
	case v1alpha1.ActionReasonRemoved:
		return "a removed block of its Module has destroy = false"
	}
	return "lifecycle.destroy is false"
}

// importedFrom returns the ID or identity of an import in one line.
func importedFrom(i *v1alpha1.PlanImport) string {
	if i.ID != "" {
		return fmt.Sprintf("%q", Clean(i.ID, false))
	}
	if identity, _ := decode(i.Identity).(map[string]any); len(identity) > 0 {
		var parts []string
		for _, k := range slices.Sorted(maps.Keys(identity)) {
			parts = append(parts, Clean(k, false)+" = "+Clean(scalar(identity[k]), false))
		}
		return "the identity " + strings.Join(parts, ", ")
	}
	return "an ID that is known after apply"
}

// LeftFiles is the reason of a delete because of prune, before the object itself is deleted. Terraform has no such
// reason.
const LeftFiles = "delete_because_left_files"

// reason returns the reason of a change; "" if neither its action reason nor another change explains it.
func reason(c *v1alpha1.PlanChange) string {
	if why := cmp.Or(reasonOfInstance(c), reasonText(c.ActionReason)); why != "" || c.DestroyedWith == "" ||
		c.Action != v1alpha1.ActionDelete {
		return why
	}
	return "because it refers to " + Clean(c.DestroyedWith, false) + ", which is destroyed"
}

// reasonOfInstance returns the reason why an instance that left its ResourceSet or its Module is destroyed, in
// Terraform's words; "" for others.
func reasonOfInstance(c *v1alpha1.PlanChange) string {
	_, key, ok := v1alpha1.ParseInstanceName(c.Object.Name)
	if v1alpha1.OwnerKind(c.Object.Name) == "Module" {
		switch c.ActionReason {
		case "delete_because_wrong_repetition":
			return "because its block uses count or for_each in another way now"
		case "delete_because_no_module":
			path, _ := v1alpha1.SplitModuleObjectName(c.Object.Name)
			return "because " + Clean(v1alpha1.ShownModule(path), false) + " is not in configuration"
		case "delete_because_no_resource_config":
			return "because its Module was deleted, or has no such resource any more"
		}
	}
	if !ok {
		return ""
	}
	text := Clean(key.String(), false)
	switch c.ActionReason {
	case "delete_because_count_index":
		return "because index " + text + " is out of range for count"
	case "delete_because_each_key":
		return "because key " + text + " is not in for_each map"
	case "delete_because_wrong_repetition":
		if key.Named {
			return "because its ResourceSet has no forEach any more"
		}
		return "because its ResourceSet has no count any more"
	case "delete_because_no_resource_config":
		return "because its ResourceSet was deleted, or has another template now"
	}
	return ""
}

// templateName returns the name of an object, or the name that an instance has in the template of its ResourceSet.
func templateName(name string) string {
	_, inner := v1alpha1.SplitModuleObjectName(name)
	base, _, _ := v1alpha1.ParseInstanceName(inner)
	return base
}

// reasonText returns the phrase for a reason of Terraform's JSON plan, or "" if the heading already says it.
func reasonText(reason string) string {
	switch reason {
	case "", "replace_because_cannot_update", "replace_by_request", "replace_because_tainted", "replace_by_triggers",
		"delete_because_requested":
		return ""
	case "delete_because_no_resource_config":
		return "because its object was deleted"
	case LeftFiles:
		return "because its object is no longer in the files"
	case "delete_because_no_move_target":
		return "because the object that it was moved to does not exist"
	case "invoke_because_requested":
		return "as requested"
	case "read_because_config_unknown":
		return "its arguments refer to values that are not known yet"
	case "read_because_dependency_pending":
		return "it depends on a resource with changes pending"
	}
	return strings.ReplaceAll(Clean(reason, false), "_", " ")
}

// Resource renders the attributes of one resource, as `terraform state show` does.
func Resource(mode v1alpha1.Mode, typ, name string, attributes map[string]any, style Style) string {
	p := &printer{style: style}
	p.raw(fmt.Sprintf("%s %q %q {", block(mode), typ, templateName(name)))
	v, _ := combine(attributes, nil, nil).(map[string]any)
	p.attributes(2, "=", nil, v, "", true)
	p.raw("}")
	return p.b.String()
}
