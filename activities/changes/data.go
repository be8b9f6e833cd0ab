package changes

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/plan"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/session"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// DataState returns the state of a data source with the value v. It returns an error if the state is too large to
// store, and nil if the data source was never read.
func DataState(l *ledger.Ledger, c *ledger.Change, r *resource.Resource, v cty.Value) (*ledger.State, error) {
	plain, _ := v.UnmarkDeep()
	if plain.IsNull() {
		return nil, nil
	}
	raw, err := ctyjson.Marshal(plain, r.Schema.Block.ImpliedType())
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", r.Address, err)
	}
	sensitive, err := instance.SensitivePaths(v)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", r.Address, err)
	}
	state := &ledger.State{
		Type: r.Address.Type, ProviderConfig: c.ProviderConfig, ProviderVersion: r.Entry.Package.Version,
		SchemaVersion: r.Schema.Version,
		Attributes:    raw, Sensitive: sensitive, Dependencies: c.Dependencies,
	}
	return state, TooLarge(r.Address, l.CheckState(r.Address.String(), state))
}

// TooLarge converts a *ledger.TooLargeError to an error about a resource. It returns other errors unchanged.
func TooLarge(addr lang.Address, err error) error {
	tooLarge, ok := errors.AsType[*ledger.TooLargeError](err)
	if !ok {
		return err
	}
	return &diag.Failure{Diagnostics: diag.Diagnostics{lang.Problem(addr, "", "Record too large",
		diag.Sentence(tooLarge.Error()))}}
}

// RecordData writes the value of a data source to the ledger, and to the status of its object if that exists.
func RecordData(ctx context.Context, src *scope.Sources, po *v1alpha1.Plan, c *ledger.Change, r *resource.Resource,
	v cty.Value) error {
	state, err := DataState(src.Ledger, c, r, v)
	if err != nil || state == nil {
		return err
	}
	planned, err := PlannedValue(c, r.Schema.Block)
	if err != nil {
		return err
	}
	renewed := Renewed(c, planned)
	for attempt := 1; ; attempt++ {
		rec, err := src.Ledger.Instance(ctx, c.Object)
		if err != nil {
			return err
		}
		if len(renewed) == 0 && rec.Exists() && rec.Object.Generation == c.Object.Generation &&
			reflect.DeepEqual(rec.State, *state) && resource.StatusOf(r.Object).Good() {
			return nil // most data sources return the same value each time, so skip the write
		}
		rec.Object, rec.Mode, rec.Provider, rec.Plan, rec.State = c.Object, v1alpha1.ModeData, r.Entry.Name, po.UID,
			*state
		rec.Causes = CausesOf(po, c)
		rec.Renewed = renewed
		err = src.Ledger.Save(ctx, rec)
		if errors.Is(err, ledger.ErrConflict) && attempt < session.Attempts {
			continue // another plan read it, too; the last write is the newest
		}
		if err != nil {
			return err
		}
		break
	}
	return resource.WriteStatus(ctx, src.Objects, c.Object, nil, func(s *resource.Status) {
		s.Attributes = plan.Attributes(r.Schema.Block, v)
		s.Ready(c.Object.Generation, "The data source was read.")
	})
}
