package instance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/schema"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// DecodeIdentity decodes an identity of the current version from JSON, as written by EncodeIdentity or by a user.
// Omitted attributes are null. It returns cty.NilVal if raw is empty, and an error if the type has no identities.
func (t *Type) DecodeIdentity(raw json.RawMessage) (cty.Value, error) {
	if len(raw) == 0 {
		return cty.NilVal, nil
	}
	if t.Identity == nil {
		return cty.NilVal, fmt.Errorf("decode identity: the provider has no identity for %s", t.Name)
	}
	v, err := ctyjson.Unmarshal(raw, t.Identity.ImpliedType())
	if err != nil {
		if pe, ok := errors.AsType[cty.PathError](err); ok && len(pe.Path) > 0 {
			err = fmt.Errorf("%s: %w", schema.FormatPath(pe.Path), err)
		}
		return cty.NilVal, fmt.Errorf("decode identity of %s: %w", t.Name, err)
	}
	return v, nil
}

// EncodeIdentity encodes an identity as JSON. It returns nil if there is none.
func (t *Type) EncodeIdentity(v cty.Value) (json.RawMessage, error) {
	if none(v) || t.Identity == nil {
		return nil, nil
	}
	raw, err := ctyjson.Marshal(unmarked(v), t.Identity.ImpliedType())
	if err != nil {
		return nil, fmt.Errorf("encode identity of %s: %w", t.Name, err)
	}
	return raw, nil
}

// loadIdentity converts a recorded identity to the current version. As in Terraform, it calls the provider only if the
// versions differ.
func (t *Type) loadIdentity(ctx context.Context, rec *ledger.State) (cty.Value, error) {
	if len(rec.Identity) == 0 || t.Identity == nil {
		return cty.NilVal, nil
	}
	switch {
	case rec.IdentityVersion > t.Identity.Version:
		return cty.NilVal, fmt.Errorf(
			"load identity of %s: it was written by a newer provider (identity version %d, this provider's is %d); install the provider version %s or newer",
			t.Name, rec.IdentityVersion, t.Identity.Version, rec.ProviderVersion)
	case rec.IdentityVersion == t.Identity.Version:
		v, err := t.DecodeIdentity(rec.Identity)
		if err != nil {
			return cty.NilVal, fmt.Errorf(
				"%w; most likely the provider changed its schema without changing the schema's version, which is a bug of the provider", err)
		}
		return v, nil
	}
	resp, err := t.Provider.UpgradeResourceIdentity(ctx, &tfprotov6.UpgradeResourceIdentityRequest{
		TypeName: t.Name, Version: rec.IdentityVersion, RawIdentity: &tfprotov6.RawState{JSON: rec.Identity},
	})
	if err != nil {
		return cty.NilVal, fmt.Errorf("upgrade identity of %s: %w", t.Name, err)
	}
	if _, err := diag.Answer("upgrade identity", resp.Diagnostics); err != nil {
		return cty.NilVal, err
	}
	return t.takeKnownIdentity("upgrade identity", resp.UpgradedIdentity)
}

func (t *Type) encodeIdentity(v cty.Value) (*tfprotov6.ResourceIdentityData, error) {
	if none(v) || t.Identity == nil {
		return nil, nil
	}
	d, err := schema.Encode(unmarked(v), t.Identity.ImpliedType())
	if err != nil {
		return nil, fmt.Errorf("identity of %s: %w", t.Name, err)
	}
	return &tfprotov6.ResourceIdentityData{IdentityData: d}, nil
}

// nilMsgPack is the MessagePack encoding of null.
var nilMsgPack = []byte{0xc0}

// decodeIdentity decodes the identity in a provider's answer. It returns null or cty.NilVal if there is none.
func (t *Type) decodeIdentity(operation string, d *tfprotov6.ResourceIdentityData) (cty.Value, error) {
	if d == nil || d.IdentityData == nil {
		return cty.NilVal, nil
	}
	if t.Identity == nil {
		if len(d.IdentityData.JSON) == 0 && (len(d.IdentityData.MsgPack) == 0 ||
			bytes.Equal(d.IdentityData.MsgPack, nilMsgPack)) {
			return cty.NilVal, nil
		}
		return cty.NilVal, fmt.Errorf(
			"%s %s: the provider returned an identity, but has no schema for it, which is a bug of the provider",
			operation, t.Name)
	}
	v, err := schema.Decode(d.IdentityData, t.Identity.ImpliedType())
	if err != nil {
		return cty.NilVal, fmt.Errorf(
			"%s %s: the provider answered with an identity that does not fit its schema, which is a bug of the provider: %w", operation, t.Name, err)
	}
	return v, nil
}

// MarshalPlannedIdentity encodes a planned identity, with its unknown values, in MessagePack. It returns nil if there
// is none.
func (t *Type) MarshalPlannedIdentity(v cty.Value) ([]byte, error) {
	d, err := t.encodeIdentity(v)
	if err != nil || d == nil {
		return nil, err
	}
	return d.IdentityData.MsgPack, nil
}

// UnmarshalPlannedIdentity decodes what MarshalPlannedIdentity returned.
func (t *Type) UnmarshalPlannedIdentity(raw []byte) (cty.Value, error) {
	if raw == nil {
		return cty.NilVal, nil
	}
	return t.decodeIdentity("plan",
		&tfprotov6.ResourceIdentityData{IdentityData: &tfprotov6.DynamicValue{MsgPack: raw}})
}

// takeKnownIdentity is like decodeIdentity, but fails if a part of the identity is unknown.
func (t *Type) takeKnownIdentity(operation string, d *tfprotov6.ResourceIdentityData) (cty.Value, error) {
	v, err := t.decodeIdentity(operation, d)
	if err != nil {
		return cty.NilVal, err
	}
	return v, t.checkIdentityKnown(operation, v)
}

func (t *Type) checkIdentityKnown(operation string, v cty.Value) error {
	if v == cty.NilVal || v.IsWhollyKnown() {
		return nil
	}
	return fmt.Errorf("%s %s: the provider answered with an identity that has unknown values, which is a bug of the provider", operation, t.Name)
}

// ConformIdentity converts a user's value to the type's identity. Omitted attributes are null. The error names the
// attribute that is unsupported, missing or of the wrong type.
func (t *Type) ConformIdentity(written cty.Value) (cty.Value, error) {
	ty := written.Type()
	if written.IsNull() || !ty.IsObjectType() && !ty.IsMapType() {
		return cty.NilVal, fmt.Errorf("it must be an object of the attributes of the identity of %s", t.Name)
	}
	given := written.AsValueMap()
	vals := make(map[string]cty.Value, len(t.Identity.Attributes))
	var names []string
	for _, a := range t.Identity.Attributes {
		names = append(names, a.Name)
		v, ok := given[a.Name]
		delete(given, a.Name)
		if !ok || v.IsNull() {
			if a.RequiredForImport {
				return cty.NilVal, fmt.Errorf("the attribute %q is missing; the identity of %s needs it", a.Name,
					t.Name)
			}
			vals[a.Name] = cty.NullVal(a.Type)
			continue
		}
		var err error
		if vals[a.Name], err = convert.Convert(v, a.Type); err != nil {
			return cty.NilVal, fmt.Errorf("the attribute %q: %w", a.Name, err)
		}
	}
	for name := range given {
		return cty.NilVal, fmt.Errorf("the identity of %s has no attribute %q; it has %s", t.Name, name,
			strings.Join(names, ", "))
	}
	return cty.ObjectVal(vals), nil
}
