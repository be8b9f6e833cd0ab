package instance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/schema"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// Load converts a recorded state to the current schema. As the protocol requires, it makes the provider upgrade the
// state even if the versions are equal.
func (t *Type) Load(ctx context.Context, rec *ledger.State) (State, error) {
	if !rec.Exists() {
		return t.Null(), nil
	}
	if rec.SchemaVersion > t.Schema.Version {
		return State{}, fmt.Errorf("load state of %s: it was written by a newer provider (schema version %d, this provider's is %d); install the provider version %s or newer",
			t.Name, rec.SchemaVersion, t.Schema.Version, rec.ProviderVersion)
	}
	raw := rec.Attributes
	if rec.SchemaVersion == t.Schema.Version {
		var err error
		if raw, err = stripUnknownAttributes(raw, t.Schema.Block); err != nil {
			return State{}, fmt.Errorf("load state of %s: %w", t.Name, err)
		}
	}
	marks, err := decodePaths(rec.Sensitive)
	if err != nil {
		return State{}, fmt.Errorf("load state of %s: %w", t.Name, err)
	}
	return t.upgrade(ctx, rec, &tfprotov6.RawState{JSON: raw}, marks)
}

// upgrade makes the provider convert the attributes of a record, whose marks are given, to the current schema.
func (t *Type) upgrade(ctx context.Context, rec *ledger.State, raw *tfprotov6.RawState,
	marks []cty.PathValueMarks) (State, error) {
	identity, err := t.loadIdentity(ctx, rec)
	if err != nil {
		return State{}, err
	}
	resp, err := t.Provider.UpgradeResourceState(ctx, &tfprotov6.UpgradeResourceStateRequest{
		TypeName: t.Name, Version: rec.SchemaVersion, RawState: raw,
	})
	if err != nil {
		return State{}, fmt.Errorf("upgrade state of %s: %w", t.Name, err)
	}
	if _, err := diag.Answer("upgrade state", resp.Diagnostics); err != nil {
		return State{}, err
	}
	v, err := t.decode(resp.UpgradedState)
	if err != nil {
		return State{}, fmt.Errorf("upgrade state of %s: the provider answered with a value that does not fit its schema: %w", t.Name, err)
	}
	if v.IsNull() {
		return State{}, fmt.Errorf("upgrade state of %s: the provider answered with nothing, which is a bug of the provider", t.Name)
	}
	if !v.IsWhollyKnown() {
		return State{}, fmt.Errorf("upgrade state of %s: the provider answered with unknown values, which is a bug of the provider", t.Name)
	}
	if err := t.checkWriteOnly("upgrade state", v); err != nil {
		return State{}, err
	}
	return State{Value: restoreMarks(v, marks), Private: rec.Private, Identity: identity, Tainted: rec.Tainted}, nil
}

// Record writes a state to a ledger record. It leaves the record's other fields, such as a quarantined answer,
// unchanged.
func (t *Type) Record(rec *ledger.State, s State) error {
	if !s.Exists() {
		rec.Attributes, rec.Private, rec.Sensitive, rec.Tainted = nil, nil, nil, false
		rec.Identity, rec.IdentityVersion, rec.Created, rec.NamedBy = nil, 0, false, ""
		return nil
	}
	v, marks := unmarkedWithPaths(s.Value)
	raw, err := ctyjson.Marshal(v, t.Schema.Block.ImpliedType())
	if err != nil {
		return fmt.Errorf("encode state of %s: %w", t.Name, err)
	}
	sensitive, err := encodePaths(marks)
	if err != nil {
		return fmt.Errorf("encode state of %s: %w", t.Name, err)
	}
	identity, err := t.EncodeIdentity(s.Identity)
	if err != nil {
		return err
	}
	rec.Identity, rec.IdentityVersion = identity, 0
	if identity != nil {
		rec.IdentityVersion = t.Identity.Version
	}
	rec.Type, rec.SchemaVersion = t.Name, t.Schema.Version
	rec.Attributes, rec.Private, rec.Sensitive, rec.Tainted = raw, s.Private, sensitive, s.Tainted
	return nil
}

// stripUnknownAttributes removes attributes, also nested ones, that the schema no longer has. A provider may remove an
// attribute without a new schema version, and the upgrade would fail on it.
func stripUnknownAttributes(raw json.RawMessage, b *schema.Block) (json.RawMessage, error) {
	var stored any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber() // keep the digits of large numbers
	if err := d.Decode(&stored); err != nil {
		return nil, fmt.Errorf("decode stored attributes: %w", err)
	}
	if !strip(stored, b.ImpliedType()) {
		return raw, nil
	}
	return json.Marshal(stored)
}

// strip removes attributes that the object types lack. It reports whether it removed any.
func strip(v any, ty cty.Type) (stripped bool) {
	switch v := v.(type) {
	case []any:
		switch {
		case ty.IsListType() || ty.IsSetType():
			for _, e := range v {
				stripped = strip(e, ty.ElementType()) || stripped
			}
		case ty.IsTupleType() && ty.Length() == len(v):
			for i, e := range v {
				stripped = strip(e, ty.TupleElementType(i)) || stripped
			}
		}
	case map[string]any:
		for name, e := range v {
			switch {
			case ty.IsMapType():
				stripped = strip(e, ty.ElementType()) || stripped
			case ty.IsObjectType() && !ty.HasAttribute(name):
				delete(v, name)
				stripped = true
			case ty.IsObjectType():
				stripped = strip(e, ty.AttributeType(name)) || stripped
			}
		}
	}
	return stripped
}

// Recorded decodes the value of a ledger record without the provider. It fails if the schema version has changed.
func Recorded(rec *ledger.State, s *schema.Schema) (cty.Value, error) {
	if rec.SchemaVersion != s.Version {
		return cty.NilVal, fmt.Errorf(
			"the state of %s was written with schema version %d and the provider's is %d; plan it first", rec.Type,
			rec.SchemaVersion, s.Version)
	}
	raw, err := stripUnknownAttributes(rec.Attributes, s.Block)
	if err != nil {
		return cty.NilVal, err
	}
	v, err := ctyjson.Unmarshal(raw, s.Block.ImpliedType())
	if err != nil {
		return cty.NilVal, fmt.Errorf("decode state of %s: %w", rec.Type, err)
	}
	marks, err := decodePaths(rec.Sensitive)
	if err != nil {
		return cty.NilVal, err
	}
	return restoreMarks(v, marks), nil
}
