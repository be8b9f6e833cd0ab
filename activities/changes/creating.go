package changes

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/query"
	"github.com/hykube/hykube/internal/schema"
	"github.com/hykube/hykube/internal/scope"

	"github.com/zclconf/go-cty/cty"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
)

// This file finds creates that may have made a resource. A create that runs, or whose outcome is unknown, has no ID
// yet.

// Found returns the state that the provider returned to a plan for a resource that may not be the recorded one: an
// imported resource, or one with the recorded ID that the provider read with other arguments than before. It returns
// nil if there is none. If a read returned the recorded state, the resource is the recorded one.
func Found(c *ledger.Change) *ledger.State {
	if c.Importing != nil || c.Reconfigured && c.Read {
		return c.Refreshed
	}
	return nil
}

// Creators returns the other objects that may have created a resource. Their create is running or has an unknown
// outcome, and found, the state of the resource, does not prove that they created another one. The caller first
// refreshes the index. Creators also finds creates that ended after the refresh.
func Creators(ctx context.Context, src *scope.Sources, c *ledger.Change, e catalog.Entry,
	found *ledger.State) ([]OtherOwner, error) {
	var others []OtherOwner
	of := cmp.Or(e.Schema.Resources[c.Type], &schema.Schema{Block: &schema.Block{}})
	made, err := instance.Recorded(found, of)
	if err != nil {
		made = cty.DynamicVal // it proves nothing
	}
	for _, create := range src.Index.Creating() {
		ref := create.Object
		if ref.UID == c.Object.UID || c.Preconditions.From != nil && ref.UID == c.Preconditions.From.UID {
			continue
		}
		key := scope.CreateKey{UID: ref.UID, Revision: create.Revision, Provider: e.Name, Version: e.Package.Version,
			Type: c.Type}
		if planned, ok := src.Creates.Get(key); ok && provesDifferent(of.Block, e.Schema.Identities[c.Type], planned,
			made) {
			continue
		}
		rec, err := src.Ledger.Instance(ctx, ref)
		if err != nil {
			return nil, err
		}
		own := query.Owner{Object: rec.Object, Type: v1alpha1.TypeOf(rec.Object.Kind), Config: rec.ProviderConfig}
		if !src.Catalog.SameSource(providerOf(rec), e.Name) || !own.Is(e, c.Type) {
			continue
		}
		same, err := query.SameAccount(ctx, src, e, c.Object.Namespace, c.ProviderConfig, own.Object.Namespace,
			own.Config)
		if err != nil {
			return nil, err
		}
		if !same && len(e.Package.Grants.Environment) == 0 {
			continue
		}
		key.Revision = rec.Revision()
		may, err := mayHaveCreated(ctx, src, rec, e, key, found, made)
		if err != nil {
			return nil, err
		}
		if !may {
			continue
		}
		right, err := rightToUpdate(src, own)
		if err != nil {
			return nil, err
		}
		others = append(others, OtherOwner{Owner: own, Same: true, Creating: true, Right: right})
	}
	return others, nil
}

// providerOf returns the name of a record's provider. Before the first create has an outcome, only the object has it.
func providerOf(rec *ledger.Instance) string {
	gv, err := apischema.ParseGroupVersion(rec.Object.APIVersion)
	if err != nil {
		return rec.Provider
	}
	name, _ := v1alpha1.ProviderOfGroup(gv.Group)
	return name
}

// mayHaveCreated reports whether the create of a record may have made the resource with the state found and the value
// made. It returns false only if an argument that identifies resources surely differs. Other arguments prove nothing: a
// cloud may change them, and an import may not read them. key is that of the create's arguments.
func mayHaveCreated(ctx context.Context, src *scope.Sources, rec *ledger.Instance, e catalog.Entry, key scope.CreateKey,
	found *ledger.State, made cty.Value) (bool, error) {
	// the create ended after the index was refreshed
	if rec.Intent == nil || rec.Intent.Action != v1alpha1.ActionCreate {
		own := query.OwnerOf(rec.Object, e, &rec.State)
		return own.Has(found.IdentityText(), found.ID()), nil
	}
	create, err := src.Ledger.Change(ctx, rec.Intent.Plan, rec.Intent.Change)
	if errors.Is(err, ledger.ErrNotFound) {
		return true, nil // its plan was deleted, and only that has the arguments
	}
	of := e.Schema.Resources[key.Type]
	if err != nil || of == nil {
		return true, err
	}
	planned, err := PlannedValue(create, of.Block)
	if err != nil {
		return true, nil
	}
	src.Creates.Put(key, planned)
	return !provesDifferent(of.Block, e.Schema.Identities[key.Type], planned, made), nil
}

// provesDifferent reports whether an argument proves that two values of a block belong to different resources. Only
// strings that are required, or part of the identity, prove it.
func provesDifferent(block *schema.Block, identity *schema.Identity, planned, made cty.Value) bool {
	if !plain(planned) || !plain(made) {
		return false
	}
	for _, a := range block.Attributes {
		if a.Type != cty.String || a.Sensitive || a.WriteOnly ||
			!a.Required && !(a.Optional && identifies(identity, a.Name)) {
			continue
		}
		if ours, theirs := planned.GetAttr(a.Name),
			made.GetAttr(a.Name); plain(ours) && plain(theirs) && !mayEqual(ours.AsString(), theirs.AsString()) {
			return true
		}
	}
	for _, b := range block.Blocks {
		if provesDifferent(b.Block, identity, singleBlock(planned.GetAttr(b.TypeName)),
			singleBlock(made.GetAttr(b.TypeName))) {
			return true
		}
	}
	return false
}

// identifies reports whether an identity, which may be nil, has an attribute.
func identifies(identity *schema.Identity, name string) bool {
	return identity != nil && slices.ContainsFunc(identity.Attributes,
		func(a *schema.IdentityAttribute) bool { return a.Name == name })
}

// plain reports whether a value is known, and neither null nor sensitive.
func plain(v cty.Value) bool { return !v.IsMarked() && v.IsKnown() && !v.IsNull() }

// singleBlock returns the only block in the value of a nested block. It returns null if there is none, or if there are
// several, because their order may differ.
func singleBlock(v cty.Value) cty.Value {
	switch ty := v.Type(); {
	case ty.IsObjectType():
		return v
	case !plain(v) || ty.IsMapType() || v.LengthInt() != 1:
		return cty.NullVal(cty.DynamicPseudoType)
	}
	return v.AsValueSlice()[0]
}

// mayEqual reports whether a provider may return a planned string as the made one. Clouds fold case, write numbers in
// another unit, reformat documents, and extend a name to an ARN, a URL or a domain.
func mayEqual(planned, made string) bool {
	a, b := parts(planned), parts(made)
	if strings.Contains(a, b) || strings.Contains(b, a) {
		return true
	}
	unclear := func(s string) bool {
		return strings.ContainsAny(s[1:2], "/0123456789+-") || strings.ContainsAny(s, "\n{[")
	}
	return unclear(a) || unclear(b)
}

var separators = strings.NewReplacer(":", "/", ".", "/", "@", "/", ",", "/", " ", "/", "_", "-")

// parts returns a string in lower case, with each part between two slashes.
func parts(s string) string {
	return "/" + strings.Trim(separators.Replace(ledger.FoldID(s)), "/") + "/"
}
