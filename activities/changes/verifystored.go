package changes

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"

	"github.com/hykube/hykube/internal/index"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/store"

	"k8s.io/apimachinery/pkg/types"
)

// This file avoids most of the work of verifying a large plan. The index knows which objects and records were written
// since the plan was made. Of changes with equal inputs, whose objects and records were not written, it verifies one.

// maxRead is the maximum number of changes that storedAt reads at once.
const maxRead = 200

// alike identifies changes that are stale for the same reasons, as long as their own objects and records were not
// written.
type alike struct {
	*Inputs
	// config is the name in lifecycle.providerConfig, and recorded that of the recorded ProviderConfig.
	config, recorded string
}

// verifyStored returns for each change why it is stale, or nil if it is not.
func (v *verifier) verifyStored(ctx context.Context, w *Stored) ([]*StaleError, error) {
	var each []int
	// members has the changes that need not be verified if the first one of their group is not stale.
	members := map[alike][]int{}
	view, err := v.viewFor(ctx, w)
	if err != nil {
		return nil, err
	}
	for i := range w.Changes {
		if w.Changes[i].NoSteps {
			continue
		}
		group, ok, err := v.groupOf(ctx, view, &w.Changes[i])
		if err != nil {
			return nil, err
		}
		if ok {
			members[group] = append(members[group], i)
			ok = len(members[group]) > 1
		}
		if !ok {
			each = append(each, i)
		}
	}
	why := make([]*StaleError, len(w.Changes))
	if err := v.verifyEach(ctx, each, why); err != nil {
		return nil, err
	}
	each = nil
	for _, group := range members {
		if why[group[0]] != nil {
			each = append(each, group[1:]...)
		}
	}
	slices.Sort(each)
	return why, v.verifyEach(ctx, each, why)
}

// viewFor returns the index for the verification of a plan, or nil if no change can be compared with it.
func (v *verifier) viewFor(ctx context.Context, w *Stored) (*index.View, error) {
	comparable := func(c StoredChange) bool { return c.inputs != nil && c.inputs.Comparable }
	if v.Index == nil || !slices.ContainsFunc(w.Changes, comparable) {
		return nil, nil
	}
	return v.Index.View(ctx, v.plan.Namespace)
}

// groupOf returns the group of a change. ok is false if the change must be verified itself.
func (v *verifier) groupOf(ctx context.Context, view *index.View, c *StoredChange) (group alike, ok bool, err error) {
	if view == nil || c.inputs == nil || !c.inputs.Comparable {
		return group, false, nil
	}
	n, ok := view.Unmoved(c.Object, c.inputs.Basis, c.inputs.Recorded)
	if !ok || n.Object.Has(index.Deleting) != c.inputs.Deleting {
		return group, false, nil
	}
	group = alike{Inputs: c.inputs, config: n.Object.Config}
	if n.Record != nil {
		group.recorded = n.Record.Config
	}
	known, done := v.groups[group]
	if !done {
		if known, err = v.comparable(ctx, view, c); err != nil {
			return group, false, err
		}
		v.groups[group] = known
	}
	return group, known, nil
}

// comparable reports whether the rights to the change cover all objects of its kind, and none of the values that it
// refers to was written since the plan was made.
func (v *verifier) comparable(ctx context.Context, view *index.View, c *StoredChange) (bool, error) {
	var referred map[string]string
	if c.inputs.Referred != "" {
		if err := json.Unmarshal([]byte(c.inputs.Referred), &referred); err != nil {
			return false, err
		}
	}
	for text := range referred {
		if addr, err := lang.ParseAddress(text); err != nil || !view.RecordUnmoved(addr, c.inputs.Basis) {
			return false, nil
		}
	}
	rights, err := c.Rights(v.Sources)
	if err != nil {
		return false, err
	}
	for i := range rights {
		if rights[i].Verb != store.VerbUse { // the ProviderConfig is the same for all
			rights[i].Name = ""
		}
	}
	return v.actors.have(ctx, rights)
}

// verifyEach verifies changes with the given indexes, which ascend, and notes why they are stale.
func (v *verifier) verifyEach(ctx context.Context, indexes []int, why []*StaleError) error {
	return eachStored(ctx, storedAt(ctx, v.Ledger, v.plan.UID, indexes),
		func(ctx context.Context, c *ledger.Change) error {
			err := v.verify(ctx, c)
			if stale, ok := errors.AsType[*StaleError](err); ok {
				why[c.Index] = stale
				return nil
			}
			return err
		})
}

// storedAt returns the changes of a plan with the given indexes, which ascend. It reads adjacent ones at once.
func storedAt(ctx context.Context, l *ledger.Ledger, plan types.UID, indexes []int) iter.Seq2[*ledger.Change, error] {
	return func(yield func(*ledger.Change, error) bool) {
		for len(indexes) > 0 {
			n := 1
			for n < min(len(indexes), maxRead) && indexes[n] == indexes[0]+n {
				n++
			}
			page, err := l.ChangesPage(ctx, plan, int32(indexes[0]), n)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, c := range page {
				if !yield(c, nil) {
					return
				}
			}
			indexes = indexes[len(page):]
		}
	}
}
