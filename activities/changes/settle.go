package changes

import (
	"context"
	"errors"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/fair"
	"github.com/hykube/hykube/internal/graph"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/session"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/workflows"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
)

// Settle removes a plan's pending approval from its objects after the plan was discarded, refused or deleted.
func Settle(ctx context.Context, src *scope.Sources, p workflows.Plan) error {
	return EachObject(ctx, src.Ledger, types.UID(p.UID), func(ctx context.Context, c *ledger.Change) error {
		obj, err := src.Objects.Get(ctx, c.Object)
		if errors.Is(err, store.ErrGone) || err == nil && resource.StatusOf(obj).Pending != p.Name {
			return nil
		}
		if err != nil {
			return err
		}
		rec, err := src.Ledger.Instance(ctx, c.Object)
		if err != nil {
			return err
		}
		lost, text, err := WhyStalled(ctx, src.Ledger, c.Object, c.Address, "", "it was not approved.")
		if err != nil {
			return err
		}
		return resource.WriteStatus(ctx, src.Objects, c.Object, func(s *resource.Status) {
			if s.Pending != p.Name {
				return
			}
			s.Settle(rec)
			switch {
			case lost != "":
				s.Stall(s.Judged, lost, text)
			case s.Good() && FoundOutsideChanged(c, rec):
				s.Wait(s.Judged, v1alpha1.ReasonAwaitingPlan,
					"A ConfigMap, a Secret or an object of another namespace that the spec refers to was changed after it was applied; make a Plan to apply the change.")
			}
		})
	})
}

// VersionOutside is the key in DependencyVersions for the ConfigMaps, Secrets and objects of other namespaces that an
// object's expressions refer to.
const VersionOutside = "outside"

// FoundOutsideChanged reports whether a plan would change a resource because of a change of an external object, such as
// a ConfigMap. The resource has its old generation, so its object does not show that.
func FoundOutsideChanged(c *ledger.Change, rec *ledger.Instance) bool {
	return c.Mode == "" && (c.Action == v1alpha1.ActionUpdate || c.Action == v1alpha1.ActionReplace) && rec.Exists() &&
		c.DependencyVersions[VersionOutside] != rec.DependencyVersions[VersionOutside]
}

// EachObject calls do for each change of a plan that affects its object, several concurrently.
func EachObject(ctx context.Context, l *ledger.Ledger, plan types.UID, do func(context.Context, *ledger.Change) error) error {
	defer fair.Pause(ctx)()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(session.Width)
	for c, err := range l.Changes(ctx, plan, 0) {
		if err != nil {
			return errors.Join(err, group.Wait())
		}
		if c.State != v1alpha1.ChangePending || c.Action == "" || HasNoSteps(c) {
			continue
		}
		group.Go(func() error {
			ctx, done, err := fair.TakeToo(ctx)
			if err != nil {
				return err
			}
			defer done()
			return do(ctx, c)
		})
	}
	return group.Wait()
}

// Each calls work for the changes that a tracker returns, at most width concurrently; see graph.Run. Each call needs a
// slot of the processors, as the caller does.
func Each(ctx context.Context, tracker graph.Source, width int, work func(ctx context.Context, i int) (ok bool, err error)) error {
	defer fair.Pause(ctx)()
	return graph.Run(ctx, tracker, width, func(ctx context.Context, i int) (bool, error) {
		ctx, done, err := fair.TakeToo(ctx)
		if err != nil {
			return false, err
		}
		defer done()
		return work(ctx, i)
	})
}
