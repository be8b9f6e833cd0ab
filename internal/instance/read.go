package instance

import (
	"context"
	"fmt"

	"github.com/hykube/hykube/internal/diag"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// Read makes the provider read the current state. The state is null if the instance no longer exists. After an error,
// Read returns the prior state, since the provider's answer is not reliable.
func (t *Type) Read(ctx context.Context, s State) (State, diag.Diagnostics, error) {
	if !s.Exists() {
		return s, nil, nil
	}
	v, marks := unmarkedWithPaths(s.Value)
	req := &tfprotov6.ReadResourceRequest{
		TypeName: t.Name, Private: s.Private,
		ClientCapabilities: &tfprotov6.ReadResourceClientCapabilities{DeferralAllowed: t.Deferral},
	}
	var err error
	if req.CurrentState, err = t.encode(v); err != nil {
		return s, nil, err
	}
	if req.CurrentIdentity, err = t.encodeIdentity(s.Identity); err != nil {
		return s, nil, err
	}
	if req.ProviderMeta, err = encodeMeta(t.Meta, t.MetaBlock); err != nil {
		return s, nil, err
	}
	resp, err := t.Provider.ReadResource(t.withSecrets(ctx, s.Value), req)
	if err != nil {
		return s, nil, fmt.Errorf("read %s: %w", t.Name, err)
	}
	diags, err := diag.Answer("read", resp.Diagnostics)
	if err != nil {
		return s, diags, err
	}
	if err := deferred("read", t.Name, resp.Deferred, t.Deferral); err != nil {
		return s, diags, err
	}
	now, err := t.decode(resp.NewState)
	if err != nil {
		return s, diags, fmt.Errorf("read %s: the provider answered with a value that does not fit its schema: %w",
			t.Name, err)
	}
	if now.IsNull() {
		return t.Null(), diags, nil
	}
	if !now.IsWhollyKnown() {
		return s, diags, fmt.Errorf("read %s: the provider answered with unknown values, which is a bug of the provider", t.Name)
	}
	if err := t.checkWriteOnly("read", now); err != nil {
		return s, diags, err
	}
	// The identity of some types changes, so a different one is no error. An answer without an identity keeps the prior
	// one.
	identity, err := t.takeKnownIdentity("read", resp.NewIdentity)
	if err != nil {
		return s, diags, err
	}
	if none(identity) {
		identity = s.Identity
	}
	return State{Value: restoreMarks(now, marks), Private: resp.Private, Identity: identity, Tainted: s.Tainted}, diags,
		nil
}
