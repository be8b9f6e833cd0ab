package module

import (
	"strings"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
)

// This file has what instances of blocks are made of, besides the spec.

// Template returns the lifecycle of the block in the form that objects have, without providerConfig and dependsOn,
// which differ between the instances of a module. All instances share it, so no caller may change it.
func (b *Block) Template() map[string]any {
	out, l := map[string]any{}, &b.Lifecycle
	if l.CreateBeforeDestroy != nil {
		out["createBeforeDestroy"] = *l.CreateBeforeDestroy
	}
	for field, e := range map[string]*Expr{"preventDestroy": l.PreventDestroy, "destroy": l.Destroy} {
		if e != nil {
			out[field] = e.Value
		}
	}
	switch {
	case l.IgnoreAll:
		out["ignoreChanges"] = []any{"all"}
	case len(l.IgnoreChanges) > 0:
		out["ignoreChanges"] = anyOf(l.IgnoreChanges)
	}
	if len(l.ReplaceTriggeredBy) > 0 {
		list := make([]any, len(l.ReplaceTriggeredBy))
		for i, e := range l.ReplaceTriggeredBy {
			list[i] = e.bare()
		}
		out["replaceTriggeredBy"] = list
	}
	for field, conditions := range map[string][]Condition{"preconditions": l.Preconditions,
		"postconditions": l.Postconditions} {
		if len(conditions) > 0 {
			out[field] = conditionsOf(conditions)
		}
	}
	if len(l.Triggers) > 0 {
		list := make([]any, len(l.Triggers))
		for i, t := range l.Triggers {
			list[i] = t.template()
		}
		out["actionTriggers"] = list
	}
	return out
}

func (t *Trigger) template() map[string]any {
	actions := make([]any, len(t.Actions))
	for i, a := range t.Actions {
		actions[i] = a.bare()
	}
	out := map[string]any{"events": anyOf(t.Events), "actions": actions}
	if t.Condition != nil {
		out["condition"] = t.Condition.Value
	}
	return out
}

func anyOf(list []string) []any {
	out := make([]any, len(list))
	for i, s := range list {
		out[i] = s
	}
	return out
}

func conditionsOf(list []Condition) []any {
	out := make([]any, len(list))
	for i, c := range list {
		out[i] = map[string]any{"condition": c.Condition.Value, "errorMessage": c.Message.Value}
	}
	return out
}

// bare returns an expression without "${" and "}".
func (e *Expr) bare() string {
	text, _ := e.Value.(string)
	if inner, ok := strings.CutPrefix(text, "${"); ok {
		return strings.TrimSuffix(inner, "}")
	}
	return text
}

// Positions maps the fields of the block's template to its file.
func (b *Block) Positions() Positions { return b.positions }

// DependsOn returns the addresses on which the instances of a block depend by depends_on: that of the block, and
// those of the calls that lead to its module. An address of lang.ModeModule stands for all that is in that module.
// An address without a key stands for all instances.
func (s *Set) DependsOn() []lang.Address {
	out := absolute(s.DependsOnTargets(), s.Module)
	for i := s.Module; i.Parent != nil; i = i.Parent {
		out = append(out, absolute(i.Call.DependsOn, i.Parent)...)
	}
	return out
}

// DependsOnTargets returns the addresses in depends_on of the block, as written.
func (s *Set) DependsOnTargets() []Target { return s.Block.DependsOn }

// absolute returns the addresses that an instance of a module names.
func absolute(targets []Target, i *Instance) []lang.Address {
	var out []lang.Address
	for _, t := range targets {
		out = append(out, t.in(i.Path))
	}
	return out
}

// in returns the address of a target in a module with a path.
func (t *Target) in(path string) lang.Address {
	for k, step := range t.Steps {
		key := step.Key.instanceKey()
		if k == len(t.Steps)-1 && t.Block == (BlockID{}) {
			a := lang.Address{Module: path, Mode: lang.ModeModule, Name: step.Name}
			if key != nil {
				return a.Instance(*key)
			}
			return a
		}
		path = v1alpha1.ModulePath(path, step.Name, key)
	}
	a := lang.Address{Module: path, Mode: t.Block.Mode, Type: t.Block.Type, Name: t.Block.Name}
	if key := t.Key.instanceKey(); key != nil {
		return a.Instance(*key)
	}
	return a
}

// instanceKey returns a constant key; nil if there is none.
func (e *Expr) instanceKey() *v1alpha1.InstanceKey {
	if e == nil {
		return nil
	}
	switch v := e.Value.(type) {
	case string:
		if text, ok := lang.Constant(v); ok {
			return &v1alpha1.InstanceKey{Named: true, Name: text}
		}
	case int64:
		return &v1alpha1.InstanceKey{Index: int(v)}
	}
	return nil
}

// ProviderAddress is the address of a provider configuration.
type ProviderAddress struct {
	// Module is the path of the module instance with the provider block; that of the root module for a configuration
	// that the Module gets from outside.
	Module string
	ProviderID
	// Key is the key of the configuration, if it has for_each; nil otherwise.
	Key *v1alpha1.InstanceKey
	// Source is the source address of the provider as the module with the block declares it; empty without one.
	Source string
	// Block is the provider block; nil for a configuration that the Module gets from outside.
	Block *Provider
}

// String returns the address within its module, as in Terraform: aws.west.
func (a ProviderAddress) String() string {
	s := a.ProviderID.String()
	if a.Key != nil {
		s += a.Key.String()
	}
	return s
}

// ProviderOf returns the provider configuration of the i-th instance of a block, as the calls that lead to its
// module pass it. v evaluates the keys of configurations.
func (v *Values) ProviderOf(s *Set, i int) (ProviderAddress, diag.Diagnostics) {
	ref := ProviderRef{ProviderID: ProviderID{Name: localProvider(s.Type)}}
	if s.Block.Provider != nil {
		ref = *s.Block.Provider
	}
	var each *lang.Instance
	if i < s.Len() { // a block without instances has a provider, too
		each = v.Instance(s, i)
	}
	return v.provider(ref, s.Module, each)
}

// Required returns the local name of the provider of a block, and what its module requires of that provider. The source
// of a provider that the module does not declare is the one that Terraform assumes.
func (s *Set) Required() (name string, of RequiredProvider) {
	name = localProvider(s.Type)
	if s.Block.Provider != nil {
		name = s.Block.Provider.Name
	}
	if required := s.Module.Config.Required[name]; required != nil {
		of = *required
	}
	switch {
	case of.Source == "" && name == "terraform":
		of.Source = "terraform.io/builtin/terraform"
	case of.Source == "":
		of.Source = "hashicorp/" + name
	}
	return name, of
}

// localProvider returns the local name of the provider of a resource type: its first word.
func localProvider(resourceType string) string {
	name, _, _ := strings.Cut(resourceType, "_")
	return name
}

func (v *Values) provider(ref ProviderRef, i *Instance, each *lang.Instance) (ProviderAddress, diag.Diagnostics) {
	var key *v1alpha1.InstanceKey
	if ref.Key != nil {
		value, _, diags := v.evaluate(ref.Key, i, each)
		if diag.HasErrors(diags) {
			return ProviderAddress{}, diags
		}
		text, err := convert.Convert(value, cty.String)
		if err != nil || !text.IsKnown() || text.IsNull() || text.IsMarked() {
			return ProviderAddress{}, ref.Key.problems("Invalid provider instance key",
				"The key of a provider configuration must be a string that is known before the plan, and not sensitive.")
		}
		key = &v1alpha1.InstanceKey{Named: true, Name: text.AsString()}
	}
	for {
		out := ProviderAddress{Module: i.Path, ProviderID: ref.ProviderID, Key: key,
			Block: i.Config.Providers[ref.ProviderID]}
		if required := i.Config.Required[ref.Name]; required != nil {
			out.Source = required.Source
		}
		if i.Parent == nil {
			return out, nil
		}
		passed := i.Call.passed(ref.ProviderID)
		switch {
		case passed != nil:
			each, _ := v.each(i.each, i.Parent, i.Call.ForEach, i.from)
			return v.provider(*passed, i.Parent, each)
		case out.Block != nil:
			return out, nil
		case ref.Alias != "":
			return out, nil // the loader has reported it
		}
		// A default configuration is that of the caller.
		i = i.Parent
	}
}

// passed returns the configuration that a call passes under a name; nil if it passes none.
func (c *Call) passed(id ProviderID) *ProviderRef {
	for _, p := range c.Providers {
		if p.Inner == id {
			return &p.Outer
		}
	}
	return nil
}
