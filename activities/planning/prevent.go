package planning

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/plan"
)

// prevent marks a change that lifecycle.preventDestroy forbids. The change stays in the plan with its consequences, and
// prevents a complete approval.
func prevent(c *ledger.Change) {
	c.Prevented, c.Blocked = true, "its lifecycle.preventDestroy forbids destroying it"
}

// prevented returns the diagnostic for a change that lifecycle.preventDestroy forbids.
func prevented(addr string) v1alpha1.Diagnostic {
	return v1alpha1.Diagnostic{
		Severity: v1alpha1.SeverityError, Summary: "Instance cannot be destroyed", Address: addr,
		Attribute: "lifecycle.preventDestroy",
		Detail:    fmt.Sprintf("The plan would destroy %s, and its lifecycle.preventDestroy forbids that. Remove preventDestroy, or undo the change that forces the destroy.", addr),
	}
}

// blockingReason returns why an error takes a change out of the plan instead of failing the plan. ok is false for other
// errors.
func blockingReason(addr lang.Address, err error) (why string, d v1alpha1.Diagnostic, ok bool) {
	if de, ok := errors.AsType[*instance.DeferredError](err); ok {
		return "the provider deferred it: " + de.Reason, v1alpha1.Diagnostic{
			Severity: v1alpha1.SeverityWarning, Summary: "Provider deferred the change", Address: addr.String(),
			Detail: fmt.Sprintf("The provider cannot plan %s yet (%s). Apply the rest, then make another plan.", addr,
				de.Reason),
		}, true
	}
	if be, ok := errors.AsType[*busyError](err); ok {
		return "another plan is changing it", v1alpha1.Diagnostic{
			Severity: v1alpha1.SeverityWarning, Summary: "Resource is being changed", Address: addr.String(),
			Detail: fmt.Sprintf("Another plan is changing this resource: %v. This plan leaves out the resource and all that depend on it. Plan again when the other plan has ended (kubectl get plans).", be),
		}, true
	}
	if errors.Is(err, errObjectChanged) {
		return "it changed while the plan was made", v1alpha1.Diagnostic{
			Severity: v1alpha1.SeverityWarning, Summary: "Object changed while the plan was made",
			Address: addr.String(),
			Detail:  fmt.Sprintf("%s was changed after planning began. This plan leaves out the object and all that depend on it. Make another plan for them.", addr),
		}, true
	}
	if ee, ok := errors.AsType[*elsewhereError](err); ok {
		return "the account may have changed", ee.diagnostic, true
	}
	return "", v1alpha1.Diagnostic{}, false
}

// summaryAccountChanged is the summary of the warning about a resource that may be that of another account.
const summaryAccountChanged = "Account may have changed"

// elsewhereError is the error for a resource of which a drift check must record nothing; see proposal.accountChanged.
type elsewhereError struct{ diagnostic v1alpha1.Diagnostic }

func (e *elsewhereError) Error() string { return e.diagnostic.Detail }

// busyError is the error if another plan is changing a resource.
type busyError struct{ intent *ledger.Intent }

func (e *busyError) Error() string {
	article := "a"
	if e.intent.Action == v1alpha1.ActionUpdate {
		article = "an"
	}
	return fmt.Sprintf("%s %s started at %s", article, strings.ToLower(string(e.intent.Action)),
		e.intent.At.Format(time.RFC3339))
}

// block takes a change out of the plan and records the reason.
func block(c *ledger.Change, why string, d v1alpha1.Diagnostic) {
	c.Action, c.State, c.Message = v1alpha1.ActionNoOp, v1alpha1.ChangeSkipped, why
	c.Diagnostics = diag.Diagnostics{d}
	c.Drift, c.Refreshed, c.Recorded, c.RecordedSensitive = nil, nil, nil, nil
	c.Importing, c.PreviousAddress, c.Checks, c.Read, c.UpdatesRecord = nil, "", false, false, false
	c.Planned, c.PlannedPrivate, c.PlannedSensitive = nil, nil, nil
	c.Before, c.After, c.AfterUnknown, c.BeforeSensitive, c.AfterSensitive = nil, nil, nil, nil, nil
	c.ReplacePaths, c.SecretsChanged = nil, nil
	c.Secrets, c.ProviderArguments, c.Origins, c.Discloses = nil, nil, nil, nil
	c.Prevented, c.Blocked, c.Referred = false, "", nil
}

// skipDependents takes the changes out of the plan that depend on those already taken out. Then it marks the changes
// that depend on those that lifecycle.preventDestroy forbids.
func (pr *proposal) skipDependents(ctx context.Context) error {
	all := pr.all
	brief := func(i int) *changes.Brief { return &all[i] }
	planned := changes.PlannedChanges(len(all), brief)
	var out, forbidden []int
	for i, c := range all {
		switch {
		case c.State == v1alpha1.ChangeSkipped:
			out = append(out, i)
		case c.Action == "": // it refers to a change that was taken out
			planned[i].Action = v1alpha1.ActionUpdate
		}
	}
	for i, c := range all {
		// A change that was taken out keeps its instance. If that was to be destroyed, its dependants stay, too.
		if c.State == v1alpha1.ChangeSkipped && (c.Deleting || pr.plan.Spec.Destroy) {
			planned[i].Action = v1alpha1.ActionDelete
		}
	}
	for i, h := range plan.Held(planned, out) {
		if h.Reason == plan.NotHeld || h.Reason == plan.HeldItself {
			continue
		}
		because := all[h.By].Address
		err := pr.edit(ctx, i, func(c *ledger.Change) {
			if c.Action == "" {
				pr.worklist.prepare(ctx, c)
			}
			block(c, "it cannot be changed without "+because+", which is deferred", v1alpha1.Diagnostic{
				Severity: v1alpha1.SeverityWarning, Summary: "Change is deferred", Address: c.Address,
				Detail: fmt.Sprintf("%s stays unchanged, because %s does.", c.Address, because),
			})
		})
		if err != nil {
			return err
		}
	}
	for i, c := range all {
		if c.Prevented {
			forbidden = append(forbidden, i)
		}
	}
	for i, h := range plan.Held(changes.PlannedChanges(len(all), brief), forbidden) {
		if h.Reason == plan.HeldItself || all[i].NoSteps {
			continue
		}
		text := changes.HoldText(h, func(i int) string { return all[i].Address }, "blocked")
		if text == all[i].Blocked {
			continue // most changes are not blocked, and need no further write
		}
		if err := pr.edit(ctx, i, func(c *ledger.Change) { c.Blocked = text }); err != nil {
			return err
		}
	}
	return nil
}
