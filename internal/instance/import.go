package instance

import (
	"context"
	"errors"
	"fmt"

	"github.com/hykube/hykube/internal/audit"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/ledger"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"
)

// ImportBy identifies an existing instance, by exactly one of the two fields.
type ImportBy struct {
	// ID has the provider's own format; empty if Identity is set.
	ID string
	// Identity conforms to the type's identity schema; cty.NilVal or null if ID is set.
	Identity cty.Value
}

func (b ImportBy) String() string {
	if b.ID != "" {
		return fmt.Sprintf("ID %q", b.ID)
	}
	return "the given identity"
}

// Import makes the provider import an existing instance and then read it, since the imported state alone may be
// incomplete.
func (t *Type) Import(ctx context.Context, by ImportBy) (State, diag.Diagnostics, error) {
	req := &tfprotov6.ImportResourceStateRequest{
		TypeName: t.Name, ID: by.ID,
		ClientCapabilities: &tfprotov6.ImportResourceStateClientCapabilities{DeferralAllowed: t.Deferral},
	}
	if err := t.checkImportBy(by); err != nil {
		return State{}, nil, fmt.Errorf("import %s: %w", t.Name, err)
	}
	var err error
	if req.Identity, err = t.encodeIdentity(by.Identity); err != nil {
		return State{}, nil, err
	}
	end, err := t.Audit.begin(audit.Import, t.Name)
	if err != nil {
		return State{}, nil, err
	}
	resp, err := t.Provider.ImportResourceState(ctx, req)
	if err != nil {
		end(unanswered(err))
		return State{}, nil, fmt.Errorf("import %s: %w", t.Name, err)
	}
	diags, err := diag.Answer("import", resp.Diagnostics)
	end(err)
	if err != nil {
		return State{}, diags, err
	}
	if err := deferred("import", t.Name, resp.Deferred, t.Deferral); err != nil {
		return State{}, diags, err
	}
	found, err := t.imported(by, resp.ImportedResources)
	if err != nil {
		return State{}, diags, fmt.Errorf("import %s: %w", t.Name, err)
	}
	now, more, err := t.Read(ctx, found)
	diags = append(diags, more...)
	if err != nil {
		return State{}, diags, err
	}
	if !now.Exists() {
		return State{}, diags, fmt.Errorf("import %s: %w", t.Name, &NothingFoundError{fmt.Sprintf(
			"cannot import non-existent remote object: nothing exists under %s; check the ID, and that the provider's configuration is for the right account and region", by)})
	}
	return now, diags, nil
}

// NothingFoundError is the error of an import for which the provider found no resource.
type NothingFoundError struct{ text string }

func (e *NothingFoundError) Error() string { return e.text }

func (t *Type) checkImportBy(by ImportBy) error {
	switch {
	case by.ID == "" && none(by.Identity):
		return errors.New("the import has neither an ID nor an identity; set one")
	case by.ID != "" && !none(by.Identity):
		return errors.New("the import has both an ID and an identity; remove one")
	case by.ID != "":
		return nil
	case t.Identity == nil:
		return errors.New("the provider has no identity for this type; import by ID instead")
	case !by.Identity.IsWhollyKnown():
		return errors.New("the identity is not known yet")
	}
	for _, a := range t.Identity.Attributes {
		if !by.Identity.Type().HasAttribute(a.Name) || a.RequiredForImport &&
			unmarked(by.Identity).GetAttr(a.Name).IsNull() {
			return fmt.Errorf("identity: attribute %q is required and not set", a.Name)
		}
	}
	return nil
}

// imported returns the state of the only instance in a provider's answer. Any other number of instances is an error.
func (t *Type) imported(by ImportBy, all []*tfprotov6.ImportedResource) (State, error) {
	if len(all) == 0 {
		return State{}, &NothingFoundError{fmt.Sprintf("the provider found nothing under %s", by)}
	}
	if len(all) != 1 {
		return State{}, fmt.Errorf("the provider found %d resources under %s, but an import needs exactly one",
			len(all), by)
	}
	r := all[0]
	if r == nil || r.TypeName != t.Name {
		found := ""
		if r != nil {
			found = r.TypeName
		}
		return State{}, fmt.Errorf("the provider found a resource of another type, %q, under %s", found, by)
	}
	v, err := t.decode(r.State)
	if err != nil {
		return State{}, fmt.Errorf("the provider answered with a value that does not fit its schema: %w", err)
	}
	if v.IsNull() {
		return State{}, &NothingFoundError{fmt.Sprintf(
			"the provider found nothing under %s and returned no error, which is a bug of the provider", by)}
	}
	if !v.IsWhollyKnown() {
		return State{}, errors.New("the provider answered with unknown values, which is a bug of the provider")
	}
	if err := t.checkWriteOnly("import", v); err != nil {
		return State{}, err
	}
	identity, err := t.takeKnownIdentity("import", r.Identity)
	if err != nil {
		return State{}, err
	}
	return State{Value: v, Private: r.Private, Identity: identity}, nil
}

// MoveSource is the recorded state of an instance of another type or provider.
type MoveSource struct {
	// ProviderAddress is the registry address of the state's provider, such as "registry.terraform.io/hashicorp/null".
	ProviderAddress string
	// TypeName is the Terraform type of the state.
	TypeName string
	State    *ledger.State
}

// Move makes the provider convert the state of another type or provider to this type. It does not change
// infrastructure.
func (t *Type) Move(ctx context.Context, from MoveSource) (State, diag.Diagnostics, error) {
	if !from.State.Exists() {
		return t.Null(), nil, nil
	}
	if !t.MoveState {
		return State{}, nil, fmt.Errorf(
			"move %s to %s: the provider cannot convert the state of another type or provider; remove lifecycle.moved, and import the resource instead", from.TypeName, t.Name)
	}
	req := &tfprotov6.MoveResourceStateRequest{
		SourceProviderAddress: from.ProviderAddress, SourceTypeName: from.TypeName, TargetTypeName: t.Name,
		SourceSchemaVersion: from.State.SchemaVersion, SourceState: &tfprotov6.RawState{JSON: from.State.Attributes},
		SourcePrivate: from.State.Private,
	}
	if len(from.State.Identity) > 0 {
		req.SourceIdentity = &tfprotov6.RawState{JSON: from.State.Identity}
		req.SourceIdentitySchemaVersion = from.State.IdentityVersion
	}
	resp, err := t.Provider.MoveResourceState(ctx, req)
	if err != nil {
		return State{}, nil, fmt.Errorf("move %s to %s: %w", from.TypeName, t.Name, err)
	}
	diags, err := diag.Answer("move", resp.Diagnostics)
	if err != nil {
		return State{}, diags, err
	}
	s, err := t.moved(from.State, resp)
	if err != nil {
		return State{}, diags, fmt.Errorf("move %s to %s: %w", from.TypeName, t.Name, err)
	}
	return s, diags, nil
}

func (t *Type) moved(from *ledger.State, resp *tfprotov6.MoveResourceStateResponse) (State, error) {
	v, err := t.decode(resp.TargetState)
	if err != nil {
		return State{}, fmt.Errorf("the provider answered with a value that does not fit its schema: %w", err)
	}
	if v.IsNull() || !v.IsWhollyKnown() {
		return State{}, errors.New("the provider answered with nothing, or with unknown values, which is a bug of the provider")
	}
	if err := t.checkWriteOnly("move", v); err != nil {
		return State{}, err
	}
	identity, err := t.takeKnownIdentity("move", resp.TargetIdentity)
	if err != nil {
		return State{}, err
	}
	// A secret stays secret if the new type has the same attribute.
	marks, err := decodePaths(from.Sensitive)
	if err != nil {
		return State{}, err
	}
	return State{Value: restoreMarks(v, marks), Private: resp.TargetPrivate, Identity: identity, Tainted: from.Tainted},
		nil
}
