package states

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/bug"
	"github.com/hykube/hykube/internal/fair"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/plan"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/store"
)

// messagePushed is the message of an object whose record was pushed.
const messagePushed = "its record came from a Terraform state; make a Plan to see whether it needs changes"

// rawOf returns the JSON of a value; nil for none.
func rawOf(v *runtime.RawExtension) []byte {
	if v == nil || string(v.Raw) == "null" {
		return nil
	}
	return v.Raw
}

// commit writes the records of a push. The steps before and after the one transaction with the records may be repeated:
// the first lets the objects outlive their infrastructure, and the last writes their status. If the time is over, the
// client commits again.
//
// An object keeps the finalizer after a refused commit. A create of a plan that began meanwhile may need it, and the
// next plan of a deleted object without a record removes it.
func (s *States) commit(ctx context.Context, who v1alpha1.Identity, p *v1alpha1.StatePush) error {
	fair.Lock(ctx, &s.committing)
	defer s.committing.Unlock()
	push, err := s.begun(ctx, who, p)
	if err != nil {
		return err
	}
	staged, err := s.staged(ctx, push)
	if err != nil {
		return err
	}
	end := time.Now().Add(commitTime)
	if !push.Committed {
		left, err := s.hold(ctx, who, p, staged, end)
		if err != nil {
			return err
		}
		if left > 0 {
			p.Status.Remaining = int32(len(staged))
			return nil
		}
		dropIdentities(staged)
		if err := s.write(ctx, p, push, staged); err != nil {
			return err
		}
	}
	p.Status.Committed = true
	reported, err := s.report(ctx, staged[min(push.Reported, len(staged)):], end)
	if err != nil {
		return err
	}
	if reported += push.Reported; reported < len(staged) {
		p.Status.Remaining = int32(len(staged) - reported)
		return s.Ledger.NoteReported(ctx, push, reported)
	}
	return s.Ledger.DropPush(ctx, push)
}

// staged returns the records of a push.
func (s *States) staged(ctx context.Context, push *ledger.Push) ([]*ledger.Staged, error) {
	var all []*ledger.Staged
	addresses := map[types.UID]string{}
	for r, err := range s.Ledger.StagedRecords(ctx, push) {
		if err != nil {
			return nil, err
		}
		uid := r.Record.Object.UID
		if other, twice := addresses[uid]; twice {
			return nil, conflict("%s and %s have the same object %s/%s: map one of them to another object with --map",
				other, r.Address, r.Record.Object.Kind, r.Record.Object.Name)
		}
		addresses[uid] = r.Address
		all = append(all, r)
	}
	return all, nil
}

// hold checks the rights again, and adds the finalizer to the objects. left is the number of objects for which the time
// did not suffice.
func (s *States) hold(ctx context.Context, who v1alpha1.Identity, p *v1alpha1.StatePush, staged []*ledger.Staged,
	end time.Time) (left int, err error) {
	if err := s.Index.Refresh(ctx); err != nil {
		return 0, err
	}
	asker := &store.Asker{Access: s.Access, Who: who}
	var needed []store.Right
	for _, r := range staged {
		plural, err := s.Objects.Plural(r.Record.Object)
		if err != nil {
			return 0, err
		}
		needed = append(needed, rightsTo(p.Namespace, v1alpha1.ProviderGroup(r.Record.Provider), plural,
			r.Record.Object.Name)...)
		if cfg := r.Record.ProviderConfig; cfg != "" {
			needed = append(needed, store.UseOf(p.Namespace, cfg))
		}
	}
	missing, err := asker.Missing(ctx, needed)
	if err != nil {
		return 0, err
	}
	if err := forbidden("statepushes", "push", missing); err != nil {
		return 0, err
	}
	done, err := each(ctx, staged, end, func(ctx context.Context, r *ledger.Staged) error {
		obj, err := s.Objects.GetSpec(ctx, r.Record.Object)
		if err == nil {
			err = s.checkAgain(ctx, asker, obj, r)
		}
		if err == nil {
			_, err = s.Objects.AddFinalizer(ctx, obj)
		}
		if errors.Is(err, store.ErrGone) {
			return conflict("the object %s/%s for %s was changed or deleted meanwhile. Push the state again",
				r.Record.Object.Kind, r.Record.Object.Name, r.Address)
		}
		return err
	})
	return len(staged) - done, err
}

// checkAgain checks that no other object took over a resource since its page was checked.
func (s *States) checkAgain(ctx context.Context, asker *store.Asker, obj *unstructured.Unstructured,
	r *ledger.Staged) error {
	of, err := resource.Of(obj, s.Catalog)
	if err != nil {
		return err
	}
	err = s.checkOwners(ctx, asker, of, r.Record)
	if p, ok := asProblem(r.Address, err); ok {
		return conflict("%s: %s. %s", p.Address, p.Problem, p.Remedy)
	}
	return err
}

// dropIdentities removes the identities of records before they are written. An identity proves that a resource is not
// another one with the same ID, and this one is the client's word. The read in the next plan gives the resource its
// identity.
func dropIdentities(staged []*ledger.Staged) {
	drop := func(s *ledger.State) { s.Identity, s.IdentityVersion = nil, 0 }
	for _, r := range staged {
		drop(&r.Record.State)
		for i := range r.Record.Deposed {
			drop(&r.Record.Deposed[i].State)
		}
	}
}

// each calls do for the records, many at once, until the end. done is the number of records, from the first, for which
// it was called.
func each(ctx context.Context, staged []*ledger.Staged, end time.Time,
	do func(context.Context, *ledger.Staged) error) (done int, err error) {
	group, ctx := bug.GroupOf(ctx)
	group.SetLimit(width)
	for _, r := range staged {
		if time.Now().After(end) && done > 0 || ctx.Err() != nil {
			break
		}
		done++
		group.Go(func() error { return do(ctx, r) })
	}
	return done, group.Wait()
}

// write writes the records in one transaction.
func (s *States) write(ctx context.Context, p *v1alpha1.StatePush, push *ledger.Push, staged []*ledger.Staged) error {
	lineages, err := s.checkLineage(ctx, p)
	if err != nil {
		return err
	}
	if err := s.Ledger.HasSpace(); err != nil {
		return err
	}
	lineages.Note(p.Spec.Module, p.Spec.Lineage, p.Spec.Serial, p.Spec.TerraformVersion)
	if err = s.Ledger.CommitPush(ctx, push, lineages, staged); errors.Is(err, ledger.ErrConflict) {
		return conflict("a plan or another push changed a record meanwhile, and nothing was recorded. Push the state again")
	}
	return err
}

// report writes the status of the objects of committed records, until the end. It returns their number.
func (s *States) report(ctx context.Context, staged []*ledger.Staged, end time.Time) (int, error) {
	var failed atomic.Value
	done, err := each(ctx, staged, end, func(ctx context.Context, r *ledger.Staged) error {
		rec := r.Record
		attributes, err := s.attributesOf(rec)
		if err == nil {
			err = resource.WriteStatus(ctx, s.Objects, rec.Object, nil, func(st *resource.Status) {
				st.Attributes = attributes
				if rec.Tainted {
					st.Wait(st.Generation, v1alpha1.ReasonTainted, messagePushed)
				} else {
					st.Wait(st.Generation, v1alpha1.ReasonAwaitingPlan, messagePushed)
				}
			})
		}
		if err != nil {
			failed.CompareAndSwap(nil, &err)
		}
		return ctx.Err()
	})
	if first, ok := failed.Load().(*error); ok && err == nil && !apierrors.IsInvalid(*first) {
		err = *first
	}
	return done, err
}

// attributesOf returns the attributes of a record for a status, with secrets masked; nil without a current instance.
func (s *States) attributesOf(rec *ledger.Instance) (map[string]any, error) {
	e, ok := s.Catalog.Get(rec.Provider)
	if !ok || !rec.Exists() || e.Schema.Resources[rec.Type] == nil {
		return nil, nil
	}
	of := e.Schema.Resources[rec.Type]
	v, err := instance.Recorded(&rec.State, of)
	if err != nil {
		return nil, err
	}
	return plan.Attributes(of.Block, v), nil
}
