// Package instance calls a provider about one instance of a type. It loads, reads, plans, applies, imports and moves a
// managed resource. It also reads data sources, opens and closes ephemeral resources, invokes actions, lists resources
// and calls functions. It checks every answer of the provider. It follows Terraform's resource instance change
// lifecycle (https://github.com/hashicorp/terraform/blob/main/docs/resource-instance-change-lifecycle.md). The package
// does no I/O except calls to one provider: it takes configuration and recorded state as values, and returns values.
package instance

import (
	"github.com/hykube/hykube/internal/schema"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"
)

// Type is a managed resource type together with a configured provider of it.
type Type struct {
	// Name is the Terraform type name, such as "sim_network".
	Name string
	// Schema is the type's current schema.
	Schema *schema.Schema
	// Identity is the type's identity schema; nil when its instances have none.
	Identity *schema.Identity
	// PlanDestroy is true when the provider wants to be asked before a destroy.
	PlanDestroy bool
	// MoveState is true when the provider can take over the state of another type or provider.
	MoveState bool
	// GeneratesConfig is true when the provider writes the configuration of what was imported itself.
	GeneratesConfig bool
	// Deferral is true when the caller can handle a *DeferredError; the provider is told so.
	Deferral bool
	// Provider is configured, unless the configuration is not known yet.
	Provider tfprotov6.ProviderServer
	// Meta is the provider_meta that goes with every call, and MetaBlock its schema; nil when the provider takes none.
	// A Meta of cty.NilVal is null.
	Meta      cty.Value
	MetaBlock *schema.Block
}

// NewType is a managed resource type of a provider, without what only a process of it has: Provider, Meta and Deferral.
func NewType(p *schema.Provider, name string) Type {
	return Type{
		Name: name, Schema: p.Resources[name], Identity: p.Identities[name], MetaBlock: metaBlock(p),
		PlanDestroy: p.PlanDestroy, MoveState: p.MoveState, GeneratesConfig: p.GenerateConfig,
	}
}

func metaBlock(p *schema.Provider) *schema.Block {
	if p.Meta == nil {
		return nil
	}
	return p.Meta.Block
}

// State is an instance as the provider knows it.
type State struct {
	// Value conforms to the type's schema and is wholly known; null when nothing exists. Secrets are marked.
	Value cty.Value
	// Private is the provider's own.
	Private []byte
	// Identity conforms to the type's identity schema and is wholly known; null or cty.NilVal when there is none.
	Identity cty.Value
	// Tainted is true when the instance must be replaced.
	Tainted bool
}

// Exists says whether there is anything.
func (s State) Exists() bool { return s.Value != cty.NilVal && !s.Value.IsNull() }

// Null is the state of nothing.
func (t *Type) Null() State { return State{Value: cty.NullVal(t.Schema.Block.ImpliedType())} }

// DeferredError says that the provider puts a call off, and why. Only a caller that allows it ever gets one.
type DeferredError struct {
	// Reason is Terraform's: "resource_config_unknown", "provider_config_unknown", "absent_prereq" or "unknown".
	Reason string
}

func (e *DeferredError) Error() string {
	switch e.Reason {
	case "resource_config_unknown":
		return "the provider defers it until the configuration is known"
	case "provider_config_unknown":
		return "the provider defers it until its own configuration is known"
	case "absent_prereq":
		return "the provider defers it until something that it needs exists"
	}
	return "the provider defers it without a reason"
}
