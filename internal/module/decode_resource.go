package module

import (
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
)

var modeNames = map[v1alpha1.Mode]string{"": "resource", v1alpha1.ModeData: "data", v1alpha1.ModeEphemeral: "ephemeral",
	v1alpha1.ModeAction: "action"}

// newBlock returns the block to decode into: a new one, or the one that an override file changes.
func (d *decoder) newBlock(b *hcl.Block, mode v1alpha1.Mode) *Block {
	id := BlockID{mode, b.Labels[0], b.Labels[1]}
	old := d.config.Blocks[id]
	if d.duplicate(old != nil, modeNames[mode], id.Type+"."+id.Name, b) {
		return nil
	}
	if old != nil {
		return old
	}
	out := &Block{BlockID: id, Range: b.DefRange, positions: Positions{}, Spec: map[string]any{}}
	d.config.Blocks[id] = out
	return out
}

// resource decodes a resource, data or ephemeral block.
func (d *decoder) resource(b *hcl.Block, mode v1alpha1.Mode) *Block {
	block := d.newBlock(b, mode)
	if block == nil {
		return nil
	}
	content, _, diags := b.Body.PartialContent(resourceSchema)
	d.note(diags)
	d.refuseProvisioners(content.Blocks)
	of := d.in(block.positions, func(c *converter) map[string]any {
		return c.spec(restOf(b.Body, resourceSchema), metaArguments, "spec")
	})
	maps.Copy(block.Spec, of)
	d.meta(block, content)
	return block
}

// restOf returns the body without the parts of a schema. A body in native syntax stays whole, because its converter
// leaves these out by their names.
func restOf(body hcl.Body, s *hcl.BodySchema) hcl.Body {
	if _, native := body.(*hclsyntax.Body); native {
		return body
	}
	_, rest, _ := body.PartialContent(s) // the caller has reported the diagnostics
	return rest
}

// in converts with other positions.
func (d *decoder) in(p Positions, convert func(*converter) map[string]any) map[string]any {
	c := converter{files: d.files, positions: p}
	out := convert(&c)
	d.diags = append(d.diags, c.diags...)
	return out
}

func (d *decoder) action(b *hcl.Block) {
	block := d.newBlock(b, v1alpha1.ModeAction)
	if block == nil {
		return
	}
	content := d.content(b.Body, actionSchema)
	for i, config := range content.Blocks.OfType("config") {
		if i > 0 {
			d.fail(config.DefRange, "Duplicate config block", "An action has at most one config block.")
			continue
		}
		maps.Copy(block.Spec, d.in(block.positions,
			func(c *converter) map[string]any { return c.spec(config.Body, nil, "spec") }))
	}
	d.meta(block, content)
}

// meta decodes the meta-arguments of a block.
func (d *decoder) meta(block *Block, content *hcl.BodyContent) {
	outer := d.positions
	d.positions = block.positions
	defer func() { d.positions = outer }()
	attrs := content.Attributes
	d.repetition(&block.Repetition, attrs, "")
	if attr := attrs["provider"]; attr != nil {
		if ref, ok := d.providerRef(attr.Expr, "provider"); ok {
			block.Provider = ref
		}
	}
	if attr := attrs["depends_on"]; attr != nil {
		block.DependsOn = d.targets(attr)
	}
	for i, b := range content.Blocks.OfType("lifecycle") {
		if i > 0 {
			d.fail(b.DefRange, "Duplicate lifecycle block", "A block has at most one lifecycle block.")
			continue
		}
		d.lifecycle(block, b)
	}
}

// repetition decodes count and for_each.
func (d *decoder) repetition(r *Repetition, attrs hcl.Attributes, field string) {
	count, forEach := attrs["count"], attrs["for_each"]
	if count != nil && forEach != nil {
		d.fail(forEach.NameRange, "Invalid combination of \"count\" and \"for_each\"",
			"The \"count\" and \"for_each\" meta-arguments are mutually-exclusive, only one should be used to be explicit about the number of resources to be created.")
		return
	}
	if count != nil || forEach != nil {
		r.Count, r.ForEach = d.optional(attrs, "count", field), d.optional(attrs, "for_each", field)
	}
}

// refuseProvisioners reports blocks that Hykube cannot carry out.
func (d *decoder) refuseProvisioners(blocks hcl.Blocks) {
	for _, b := range blocks {
		switch b.Type {
		case "provisioner":
			d.fail(b.DefRange, "Unsupported provisioner",
				"Hykube runs no provisioners: they act on machines, and a plan cannot show what they do. Use what the provider has for it, such as user data, an action, or a workflow after the apply; then remove the block.")
		case "connection":
			d.fail(b.DefRange, "Unsupported connection",
				"Hykube runs no provisioners, so a connection block has no effect. Remove it.")
		}
	}
}

// lifecycleOf are the arguments and blocks that the lifecycle of each mode may have.
var lifecycleOf = map[v1alpha1.Mode][]string{
	"": {"create_before_destroy", "prevent_destroy", "ignore_changes", "replace_triggered_by",
		"enabled", "destroy", "precondition", "postcondition", "action_trigger"},
	v1alpha1.ModeData:      {"enabled", "precondition", "postcondition"},
	v1alpha1.ModeEphemeral: {"enabled", "precondition", "postcondition"},
	v1alpha1.ModeAction:    {"enabled", "precondition"},
}

func (d *decoder) lifecycle(block *Block, b *hcl.Block) {
	content, l := d.content(b.Body, lifecycleSchema), &block.Lifecycle
	for name, attr := range content.Attributes {
		if !slices.Contains(lifecycleOf[block.Mode], name) {
			d.fail(attr.NameRange, "Unsupported argument",
				"The lifecycle argument %q cannot be used in a block of the type %q.", name, modeNames[block.Mode])
		}
	}
	for _, inner := range content.Blocks {
		if !slices.Contains(lifecycleOf[block.Mode], inner.Type) {
			d.fail(inner.DefRange, "Unsupported block type",
				"The lifecycle block %q cannot be used in a block of the type %q.", inner.Type, modeNames[block.Mode])
		}
	}
	attrs := content.Attributes
	if attr := attrs["create_before_destroy"]; attr != nil {
		l.CreateBeforeDestroy = new(d.bool(attr, false))
	}
	for name, to := range map[string]**Expr{"prevent_destroy": &l.PreventDestroy, "destroy": &l.Destroy,
		"enabled": &block.Enabled} {
		if attrs[name] != nil {
			*to = d.optional(attrs, name, "lifecycle")
		}
	}
	if attr := attrs["ignore_changes"]; attr != nil {
		d.ignoreChanges(l, attr)
	}
	if attr := attrs["replace_triggered_by"]; attr != nil {
		items, diags := hcl.ExprList(attr.Expr)
		d.note(diags)
		l.ReplaceTriggeredBy = nil
		for i, e := range items {
			l.ReplaceTriggeredBy = append(l.ReplaceTriggeredBy,
				d.reference(e, diag.IndexField("lifecycle.replace_triggered_by", i)))
		}
	}
	if conditions := d.conditions(content.Blocks, "precondition", "lifecycle"); conditions != nil {
		l.Preconditions = conditions
	}
	if conditions := d.conditions(content.Blocks, "postcondition", "lifecycle"); conditions != nil {
		l.Postconditions = conditions
	}
	if triggers := content.Blocks.OfType("action_trigger"); len(triggers) > 0 {
		l.Triggers = nil
		for i, t := range triggers {
			d.trigger(l, t, diag.IndexField("lifecycle.action_trigger", i))
		}
	}
}

// reference converts a reference, which JSON syntax has as a string without "${" and "}".
func (d *decoder) reference(e hcl.Expression, field string) *Expr {
	out := d.expr(e, field)
	if text, ok := out.Value.(string); ok && !strings.HasPrefix(text, "${") {
		out.Value = "${" + text + "}"
	}
	return out
}

func (d *decoder) ignoreChanges(l *Lifecycle, attr *hcl.Attribute) {
	l.IgnoreAll, l.IgnoreChanges = false, nil
	if hcl.ExprAsKeyword(attr.Expr) == "all" {
		l.IgnoreAll = true
		return
	}
	items, diags := hcl.ExprList(attr.Expr)
	d.note(diags)
	for _, e := range items {
		native, ok := d.nativeOf(e) // a string is deprecated in Terraform, but allowed
		if !ok {
			continue
		}
		t, diags := hcl.RelTraversalForExpr(native)
		d.note(diags)
		if diags.HasErrors() {
			continue
		}
		l.IgnoreChanges = append(l.IgnoreChanges, relativeText(t))
	}
}

// relativeText returns the steps of a traversal as a field path, such as tags["Name"].
func relativeText(t hcl.Traversal) string {
	out := ""
	for _, s := range t {
		switch s := s.(type) {
		case hcl.TraverseRoot:
			out = diag.KeyField(out, s.Name)
		case hcl.TraverseAttr:
			out = diag.KeyField(out, s.Name)
		case hcl.TraverseIndex:
			if text, ok := jsonOf(s.Key).(string); ok {
				out += "[" + quoted(text) + "]"
			} else {
				out += "[" + diag.NumberText(s.Key.AsBigFloat()) + "]"
			}
		}
	}
	return out
}

// triggerEvents are the events of an action_trigger block.
var triggerEvents = []string{"before_create", "after_create", "before_update", "after_update", "before_destroy",
	"after_destroy"}

func (d *decoder) trigger(l *Lifecycle, b *hcl.Block, field string) {
	content := d.content(b.Body, triggerSchema)
	t := Trigger{Condition: d.optional(content.Attributes, "condition", field), Range: b.DefRange}
	events, actions := d.required(content.Attributes, "events", b), d.required(content.Attributes, "actions", b)
	if events == nil || actions == nil {
		return
	}
	items, diags := hcl.ExprList(events.Expr)
	d.note(diags)
	for _, e := range items {
		event := hcl.ExprAsKeyword(e)
		if !slices.Contains(triggerEvents, event) {
			d.fail(e.Range(), "Invalid event", "An event is one of %s.", strings.Join(triggerEvents, ", "))
		}
		t.Events = append(t.Events, event)
	}
	items, diags = hcl.ExprList(actions.Expr)
	d.note(diags)
	for i, e := range items {
		t.Actions = append(t.Actions, d.reference(e, diag.IndexField(diag.KeyField(field, "actions"), i)))
	}
	l.Triggers = append(l.Triggers, t)
}
