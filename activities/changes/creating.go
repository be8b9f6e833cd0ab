package changes

import (
	"context"
	"errors"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/plan"
	"github.com/hykube/hykube/internal/query"
	"github.com/hykube/hykube/internal/schema"
	"github.com/hykube/hykube/internal/scope"

	"github.com/zclconf/go-cty/cty"
)

// findCreating returns the other objects that may have created the resource of an import. Their create runs, or its
// outcome is unknown, and its planned arguments are those of the imported resource. Such a create has no ID yet.
func findCreating(ctx context.Context, src *scope.Sources, c *ledger.Change, e catalog.Entry, imported *ledger.State) ([]OtherOwner, error) {
	var others []OtherOwner
	for _, ref := range src.Index.Creating() {
		if ref.UID == c.Object.UID {
			continue
		}
		rec, err := src.Ledger.Instance(ctx, ref)
		if err != nil {
			return nil, err
		}
		if rec.Intent == nil || rec.Intent.Action != v1alpha1.ActionCreate || !src.Catalog.SameSource(rec.Provider, e.Name) {
			continue
		}
		create, err := src.Ledger.Change(ctx, rec.Intent.Plan, rec.Intent.Change)
		if errors.Is(err, ledger.ErrNotFound) {
			continue // its plan was deleted
		}
		if err != nil {
			return nil, err
		}
		own := query.Owner{Object: rec.Object, Type: create.Type, Config: rec.ProviderConfig}
		if !own.Is(e, c.Type) || !mayHaveMade(create, e.Schema.Resources[c.Type], imported) {
			continue
		}
		same, err := query.SameAccount(ctx, src, e, c.Object.Namespace, c.ProviderConfig, own.Object.Namespace, own.Config)
		if err != nil {
			return nil, err
		}
		if !same && len(e.Package.Grants.Environment) == 0 {
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

// mayHaveMade reports whether a create may have made a resource: each argument that both have is equal. A resource
// without a common argument may be of any create.
func mayHaveMade(create *ledger.Change, of *schema.Schema, made *ledger.State) bool {
	planned, err := PlannedValue(create, of.Block)
	if err != nil {
		return true
	}
	found, err := instance.Recorded(made, of)
	if err != nil {
		return true
	}
	planned, _ = planned.UnmarkDeep()
	found, _ = found.UnmarkDeep()
	for name := range of.Block.ImpliedType().AttributeTypes() {
		ours, theirs := planned.GetAttr(name), found.GetAttr(name)
		if set(ours) && set(theirs) && plan.Differs(ours, theirs) {
			return false
		}
	}
	return true
}

// set reports whether a value is known and not null.
func set(v cty.Value) bool { return v.IsWhollyKnown() && !v.IsNull() }
