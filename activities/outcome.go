package activities

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/plan"

	"github.com/zclconf/go-cty/cty"
	"k8s.io/apimachinery/pkg/api/meta"
)

// This file writes the outcome of a step to its object.

// publish writes the outcome of the step to the object.
func (s *stepRun) publish(ctx context.Context) error {
	c := s.change
	g := c.Object.Generation
	gone := c.State == v1alpha1.ChangeDone && removes(c)
	nothingMade := c.State == v1alpha1.ChangeFailed && c.Action == v1alpha1.ActionCreate && s.after != nil && s.after.IsNull()
	if gone || nothingMade {
		rec, err := s.Ledger.Instance(ctx, c.Object)
		if err != nil {
			return err
		}
		if !rec.Living() && rec.Intent == nil {
			// There is nothing that the object would have to outlive.
			if err := s.Objects.Release(ctx, c.Object); err != nil || gone && c.Preconditions.Deleting {
				return err
			}
		}
	}
	if c.Deposed != "" {
		return s.publishDeposed(ctx)
	}
	return s.writeStatus(ctx, c.Object, func(st *status) {
		if s.after != nil && s.resource != nil && s.resource.mode != v1alpha1.ModeAction {
			st.attributes = plan.Attributes(s.resource.schema.Block, *s.after)
		}
		switch c.State {
		case v1alpha1.ChangeRunning:
			what := "The old instance was destroyed; the new one is about to be created."
			if c.CreateBeforeDestroy {
				what = "The new instance was created; the old one is about to be destroyed."
			}
			st.reconcile(g, what)
		case v1alpha1.ChangeDone:
			meta.RemoveStatusCondition(&st.conditions, v1alpha1.ConditionDrifted)
			switch {
			case c.Action == v1alpha1.ActionForget && c.ActionReason == plan.ReasonGone:
				st.remove(g, v1alpha1.ReasonDestroyed, "The infrastructure was removed outside of Hykube, and a plan removed its record. The next plan creates it again; delete the object if it shall not.")
			case c.Action == v1alpha1.ActionForget:
				st.remove(g, v1alpha1.ReasonForgotten, "The infrastructure was left alone and is no longer managed. The next plan creates it anew, unless lifecycle.import names it; delete the object if it shall do neither.")
			case c.Action == v1alpha1.ActionRead && gone:
				st.attributes, st.applied = nil, 0
				st.stall(g, v1alpha1.ReasonGone, "The infrastructure was removed by something other than Hykube. The next plan creates it again.")
			case gone:
				st.remove(g, v1alpha1.ReasonDestroyed, "The infrastructure was destroyed by a plan. The next plan creates it again; delete the object if it shall not.")
			case c.Action == v1alpha1.ActionRead && c.Mode == "":
				st.stall(g, v1alpha1.ReasonDrifted, fmt.Sprintf("A change made outside of Hykube was recorded: %s. The next plan changes it back if the spec says otherwise.", strings.Join(c.Drift, ", ")))
			case c.Action == v1alpha1.ActionInvoke:
				st.ready(g, "The action was run.")
			case c.Mode == v1alpha1.ModeData:
				st.ready(g, "The data source was read.")
			default:
				st.ready(g, messageApplied)
			}
		case v1alpha1.ChangeStale:
			if !st.good() {
				st.stall(g, v1alpha1.ReasonStale, "Not applied: "+c.Message+".")
			}
		case v1alpha1.ChangeUnknown:
			st.stall(g, v1alpha1.ReasonCreateUnknown, describe(c.Diagnostics))
		default:
			if halfMade(c) {
				st.stall(g, v1alpha1.ReasonReplaceIncomplete, halfText(c, describe(c.Diagnostics)))
				break
			}
			st.stall(g, v1alpha1.ReasonApplyFailed, describe(c.Diagnostics))
		}
	})
}

// publishDeposed reports on the object that an old instance could not be destroyed. It leaves the current instance out.
func (s *stepRun) publishDeposed(ctx context.Context) error {
	c := s.change
	if c.State == v1alpha1.ChangeDone {
		rec, err := s.Ledger.Instance(ctx, c.Object)
		if err != nil {
			return err
		}
		return s.writeStatus(ctx, c.Object, func(st *status) {
			if st.replaceIncomplete() {
				st.settle(rec)
			}
		})
	}
	return s.writeStatus(ctx, c.Object, func(st *status) {
		st.stall(c.Object.Generation, v1alpha1.ReasonReplaceIncomplete,
			fmt.Sprintf("An old instance (deposed %s) is still there; the next plan destroys it. %s", c.Deposed, describe(c.Diagnostics)))
	})
}

// publishAgain writes the outcome to the object once more, from what is recorded.
func (s *stepRun) publishAgain(ctx context.Context) error {
	obj, err := s.Objects.Get(ctx, s.change.Object)
	if errors.Is(err, ErrGone) {
		return nil
	}
	if err != nil {
		return err
	}
	if s.resource, err = resourceOf(obj, s.Catalog); err != nil {
		return err
	}
	if s.resource.mode != v1alpha1.ModeManaged {
		return s.publish(ctx)
	}
	rec, err := s.Ledger.Instance(ctx, s.change.Object)
	if err != nil {
		return err
	}
	if !rec.Exists() {
		s.after = new(cty.NullVal(s.resource.schema.Block.ImpliedType()))
	} else {
		s.loadRecorded(rec)
	}
	return s.publish(ctx)
}
