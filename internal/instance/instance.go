// Package instance calls a provider about one instance of a type. It loads, reads, plans, applies, imports and moves a
// managed resource. It also reads data sources, opens and closes ephemeral resources, invokes actions, lists resources
// and calls functions. It checks every answer of the provider. It follows Terraform's resource instance change
// lifecycle (https://github.com/hashicorp/terraform/blob/main/docs/resource-instance-change-lifecycle.md). The package
// does no I/O except calls to one provider: it takes configuration and recorded state as values, and returns values.
package instance

import (
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/audit"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/schema"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"
)

// Type is a managed resource type with a provider process for it.
type Type struct {
	// Name is the Terraform type name, such as "sim_network".
	Name string
	// Schema is the type's current schema.
	Schema *schema.Schema
	// Identity is the type's identity schema; nil if it has none.
	Identity *schema.Identity
	// PlanDestroy is true if the provider plans destroys.
	PlanDestroy bool
	// Deterministic is true if the provider answers the same plan request always alike.
	Deterministic bool
	// MoveState is true if the provider converts states of other types or providers.
	MoveState bool
	// GeneratesConfig is true if the provider generates the configuration of an imported instance.
	GeneratesConfig bool
	// Deferral is true if the caller handles a *DeferredError. The provider receives it as the capability
	// DeferralAllowed.
	Deferral bool
	// Provider is configured, unless its configuration is unknown.
	Provider tfprotov6.ProviderServer
	// Meta is the provider_meta value of each call; cty.NilVal means null. MetaBlock is its schema; nil if the provider
	// has none.
	Meta      cty.Value
	MetaBlock *schema.Block
	// Audit records each call that may change something; nil records nothing.
	Audit RecordFunc
}

// RecordFunc records a call before it is made. After an error, the call must not be made. end records its outcome.
type RecordFunc func(audit.Operation) (end func(error), err error)

// begin records a call. record may be nil.
func (record RecordFunc) begin(operation audit.Operation, name string) (end func(error), err error) {
	if record == nil {
		return func(error) {}, nil
	}
	if end, err = record(operation); err != nil {
		return nil, &diag.Failure{Operation: string(operation) + " " + name, Diagnostics: diag.Diagnostics{{
			Severity: v1alpha1.SeverityError, Summary: "Audit log cannot be written", Detail: err.Error(),
		}}}
	}
	return end, nil
}

// unanswered returns the error that the audit log records for a call without an answer, because the call may have
// changed something. Callers of the provider return err itself, because they may repeat the call.
func unanswered(err error) error { return &diag.Failure{Kind: diag.Lost, Cause: err} }

// NewType returns a managed resource type of a provider. The caller sets the fields that depend on a process: Provider,
// Meta and Deferral.
func NewType(p *schema.Provider, name string) Type {
	return Type{
		Name: name, Schema: p.Resources[name], Identity: p.Identities[name], MetaBlock: metaBlock(p),
		Deterministic: p.DeterministicPlans[name], PlanDestroy: p.PlanDestroy, MoveState: p.MoveState,
		GeneratesConfig: p.GenerateConfig,
	}
}

func metaBlock(p *schema.Provider) *schema.Block {
	if p.Meta == nil {
		return nil
	}
	return p.Meta.Block
}

// State is the state of an instance.
type State struct {
	// Value conforms to the type's schema and is wholly known. It is null if the instance does not exist. Secrets are
	// marked.
	Value cty.Value
	// Private is the provider's private data.
	Private []byte
	// Identity conforms to the type's identity schema and is wholly known; null or cty.NilVal if there is none.
	Identity cty.Value
	// Tainted is true if the instance must be replaced.
	Tainted bool
}

// Exists reports whether the instance exists.
func (s State) Exists() bool { return s.Value != cty.NilVal && !s.Value.IsNull() }

// Null returns the state of an instance that does not exist.
func (t *Type) Null() State { return State{Value: cty.NullVal(t.Schema.Block.ImpliedType())} }

// DeferredError is the error if the provider defers a call. The provider may only defer if the caller set Deferral.
type DeferredError struct {
	// Reason is the reason in Terraform's terms: "resource_config_unknown", "provider_config_unknown", "absent_prereq"
	// or "unknown".
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
