package changes

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"maps"
	"slices"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/bug"
	"github.com/hykube/hykube/internal/contributor"
	"github.com/hykube/hykube/internal/fair"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/plan"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/session"
	"github.com/hykube/hykube/internal/store"

	"k8s.io/apimachinery/pkg/api/meta"
)

// This file records the findings of a plan about the objects that it leaves unchanged. Planning itself writes only its
// Plan.

// RecordUnchanged handles the changes without steps. It records that their objects match the specs, the states that
// planning read, and the values of data sources. It leaves records alone that are newer than the plan. Call it when an
// apply begins, before its steps, or when planning ends without steps and so without an approval.
func RecordUnchanged(ctx context.Context, src *scope.Sources, po *v1alpha1.Plan,
	all iter.Seq2[*ledger.Change, error]) error {
	return eachStored(ctx, all, func(ctx context.Context, c *ledger.Change) error {
		switch {
		case !unchanged(c):
			return nil
		case c.Mode == v1alpha1.ModeData:
			return store.IgnoreGone(recordRead(ctx, src, po, c))
		case c.Mode == "":
			return store.IgnoreGone(recordUnchanged(ctx, src, po, c))
		}
		return nil
	})
}

// eachStored calls work for all changes, for some of them concurrently. It holds few of them in memory. Each call needs
// a slot of the processors, as the caller does. After an error, it begins no further call.
func eachStored(ctx context.Context, all iter.Seq2[*ledger.Change, error],
	work func(context.Context, *ledger.Change) error) error {
	defer fair.Pause(ctx)()
	group, working := bug.GroupOf(ctx)
	group.SetLimit(session.Width)
	for c, err := range all {
		if err != nil {
			return errors.Join(err, group.Wait())
		}
		if working.Err() != nil {
			break
		}
		group.Go(func() error {
			ctx, done, err := fair.TakeToo(working)
			if err != nil {
				return err
			}
			defer done()
			return work(ctx, c)
		})
	}
	return cmp.Or(group.Wait(), ctx.Err())
}

// unchanged reports whether a change has no steps and was not taken out of the plan.
func unchanged(c *ledger.Change) bool { return c.State == v1alpha1.ChangePending && HasNoSteps(c) }

// recordRead records the value of a data source that planning read.
func recordRead(ctx context.Context, src *scope.Sources, po *v1alpha1.Plan, c *ledger.Change) error {
	rec, err := src.Ledger.Instance(ctx, c.Object)
	if err != nil || rec.Digest() != c.Preconditions.State {
		return err // a later plan read it, too
	}
	r, err := resourceOf(ctx, src, c)
	if err != nil {
		return err
	}
	v, err := PlannedValue(c, r.Schema.Block)
	if err != nil {
		return err
	}
	return RecordData(ctx, src, po, c, r, v)
}

// recordUnchanged records that the generation of an object needs no change. For an approved plan, it also records the
// state that planning read, as the apply of a Terraform plan does. The plans of other resources rely on this state, and
// without its record every refresh would find the same drift. The same holds after recorded drift that was taken back
// in the cloud: no spec has the recorded state, and the state that planning read matches the spec.
func recordUnchanged(ctx context.Context, src *scope.Sources, po *v1alpha1.Plan, c *ledger.Change) error {
	rec, err := src.Ledger.Instance(ctx, c.Object)
	if err != nil || !rec.Exists() || rec.Intent != nil {
		return err
	}
	// an earlier attempt wrote it
	repeated := rec.Plan == po.UID && c.Refreshed.Exists() && rec.Digest() == c.Refreshed.Digest()
	if rec.Digest() != c.Preconditions.State && !repeated {
		return nil // the record is newer than this plan
	}
	before := *rec
	matches := !po.Spec.RefreshOnly && !po.Spec.Destroy
	adopts := c.Configuration.Arguments == rec.Configuration.Arguments
	if !adopts && c.Read {
		if adopts, err = mayAdopt(ctx, src, po, nil); err != nil {
			return err
		}
	}
	refreshed := RecordsRefresh(c) && (Approved(po) || matches && rec.Object.Generation == 0) &&
		(!c.AccountChanged || adopts)
	if refreshed {
		rec.State = *c.Refreshed
	}
	if refreshed && !adopts {
		rec.Configuration = before.Configuration
	}
	// An unrecorded difference remains for the next plan, which must visit the resource.
	recorded := refreshed || c.Refreshed == nil || c.Refreshed.Digest() == before.Digest()
	if matches && recorded {
		if rec.Applied, err = appliedWith(ctx, src, po, c, rec); err != nil {
			return err
		}
		rec.Object, rec.Dependencies, rec.CreateBeforeDestroy, rec.DependencyVersions = c.Object, c.Dependencies,
			c.CreatesFirst, c.DependencyVersions
	}
	// it is the same resource with the new arguments
	if recorded && adopts && c.Read && c.Configuration.Arguments != "" && !po.Spec.Destroy {
		rec.Configuration = c.Configuration
	}
	differs := !sameRecord(&before, rec)
	if differs && matches {
		// The record no longer shows that they wrote anything, and no apply had it.
		rec.Contributors = contributor.Merge(contributor.TakeBack(rec.Contributors, c.TakenBack), withoutAccount(c))
	}
	if refreshed || differs {
		rec.Plan, rec.Causes = po.UID, CausesOf(po, c)
		if err := src.Ledger.Save(ctx, rec); err != nil {
			if errors.Is(err, ledger.ErrConflict) {
				return nil // another plan has applied a newer change
			}
			return err
		}
	} else if obj, err := src.Objects.Get(ctx, c.Object); err != nil || !matches || resource.StatusOf(obj).Good() {
		return err
	}
	return reportUnchanged(ctx, src, c, rec, refreshed, matches)
}

// withoutAccount returns the contributors of a change without what they wrote of the arguments of its provider. These
// do not become values of a resource that needs no change. While they differ from the applied ones, their writers
// contribute to each change.
func withoutAccount(c *ledger.Change) []v1alpha1.Contributor {
	if c.Account == nil {
		return c.Contributors
	}
	return contributor.TakeBack(c.Contributors, c.Account.Writers)
}

// appliedWith returns the arguments of the provider with which a resource that needs no change counts as applied. These
// are those of the change if a person who did not write them made or approved the plan; else they stay the same.
func appliedWith(ctx context.Context, src *scope.Sources, po *v1alpha1.Plan, c *ledger.Change,
	rec *ledger.Instance) (ledger.AppliedArguments, error) {
	was := rec.Applied
	if was.Version == "" {
		was.Version = cmp.Or(rec.DependencyVersions[VersionOfConfig(c.ProviderConfig)], unknownVersion)
	}
	if c.Account == nil {
		return rec.Applied, nil // a plan applied the resource with them
	}
	if may, err := mayAdopt(ctx, src, po, c.Account.Writers); err != nil || !may {
		return was, err
	}
	return ledger.AppliedArguments{Version: c.ConfigVersion, Arguments: c.Account.Arguments.Arguments}, nil
}

// unknownVersion is the version of a ProviderConfig with which no plan is known to have applied a resource.
const unknownVersion = "unknown"

// mayAdopt reports whether a plan may record other arguments of a provider with a resource, and none of their writers
// decides that. A person decides it: one who approved the plan, or one who made it and could approve it. Otherwise
// whoever writes a ProviderConfig could let the plan of a stack take an endpoint for the account of its resources, and
// change the answers of that endpoint later.
func mayAdopt(ctx context.Context, src *scope.Sources, po *v1alpha1.Plan,
	writers []v1alpha1.Contributor) (bool, error) {
	if ApprovedByAnother(po, writers) {
		return true, nil
	}
	requester := src.RequesterOf(po)
	if po.Status.Stack != nil || requester == nil || !isAnother(&requester.Who, writers) {
		return false, nil
	}
	return requester.May(ctx, store.Right{Verb: store.VerbApprove, Namespace: po.Namespace, Group: v1alpha1.GroupName,
		Resource: "plans", Name: po.Name})
}

// sameRecord reports whether two records of one object have the same values in the fields that recordUnchanged writes.
func sameRecord(a, b *ledger.Instance) bool {
	return a.Object.Generation == b.Object.Generation && a.Applied == b.Applied &&
		a.CreateBeforeDestroy == b.CreateBeforeDestroy && a.Configuration == b.Configuration &&
		slices.Equal(a.Dependencies, b.Dependencies) && maps.Equal(a.DependencyVersions, b.DependencyVersions)
}

// reportUnchanged writes the status of an object. refreshed is true if its record has the state that planning read;
// matches is true if the plan found that the object needs no change.
func reportUnchanged(ctx context.Context, src *scope.Sources, c *ledger.Change, rec *ledger.Instance, refreshed,
	matches bool) error {
	var attributes map[string]any
	if refreshed {
		r, err := resourceOf(ctx, src, c)
		if err != nil {
			return err
		}
		v, err := instance.Recorded(&rec.State, r.Schema)
		if err != nil {
			return err
		}
		attributes = plan.Attributes(r.Schema.Block, v)
	}
	return resource.WriteStatus(ctx, src.Objects, c.Object, nil, func(s *resource.Status) {
		if refreshed {
			s.Attributes = attributes
			meta.RemoveStatusCondition(&s.Conditions, v1alpha1.ConditionDrifted)
		}
		if matches {
			s.Contributors = contributor.TakeBack(s.Contributors, c.TakenBack)
		}
		switch {
		case !matches:
		case len(rec.Deposed) == 0:
			s.Ready(c.Object.Generation, v1alpha1.MessageApplied)
		case !s.ReplaceIncomplete() || s.Observed != c.Object.Generation:
			s.StallDeposed(c.Object.Generation, rec)
		}
	})
}

// resourceOf decodes the object of a change.
func resourceOf(ctx context.Context, src *scope.Sources, c *ledger.Change) (*resource.Resource, error) {
	obj, err := src.Objects.Get(ctx, c.Object)
	if err != nil {
		return nil, err
	}
	return resource.Of(obj, src.Catalog)
}
