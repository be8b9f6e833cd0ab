package activities

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/plan"
)

// preventedError says that lifecycle.preventDestroy forbids a change. It blocks that change and what cannot be done without it,
// and nothing else.
type preventedError struct{}

func (*preventedError) Error() string { return "its lifecycle.preventDestroy forbids to destroy it" }

func (*preventedError) diagnostic(addr plan.Address) v1alpha1.Diagnostic {
	return attributeProblem(addr, "lifecycle.preventDestroy", "Instance cannot be destroyed",
		fmt.Sprintf("The plan would destroy %s, and its lifecycle.preventDestroy forbids that. Remove preventDestroy, or undo the change that forces the destroy.", addr))
}

// blocking says why an error takes a change out of the plan instead of failing it; ok is false for every other error.
func blocking(addr plan.Address, err error) (why string, d v1alpha1.Diagnostic, ok bool) {
	if pe, ok := errors.AsType[*preventedError](err); ok {
		return pe.Error(), pe.diagnostic(addr), true
	}
	if de, ok := errors.AsType[*instance.DeferredError](err); ok {
		return "the provider put it off: " + de.Reason, v1alpha1.Diagnostic{
			Severity: v1alpha1.SeverityWarning, Summary: "Provider deferred the change", Address: addr.String(),
			Detail: fmt.Sprintf("The provider cannot plan %s yet (%s). Apply the rest, then make another plan.", addr, de.Reason),
		}, true
	}
	if be, ok := errors.AsType[*busyError](err); ok {
		return "another plan is changing it", v1alpha1.Diagnostic{
			Severity: v1alpha1.SeverityWarning, Summary: "Resource is being changed", Address: addr.String(),
			Detail: fmt.Sprintf("Another plan is at it: %v. This plan leaves it alone, and what depends on it. Plan again when the other is done (kubectl get plans).", be),
		}, true
	}
	return "", v1alpha1.Diagnostic{}, false
}

// busyError says that another plan is changing a resource just now.
type busyError struct{ intent *ledger.Intent }

func (e *busyError) Error() string {
	article := "a"
	if e.intent.Action == v1alpha1.ActionUpdate {
		article = "an"
	}
	return fmt.Sprintf("%s %s was begun at %s", article, strings.ToLower(string(e.intent.Action)), e.intent.At.Format(time.RFC3339))
}

// block takes a change out of the plan, and says why.
func block(c *ledger.Change, why string, d v1alpha1.Diagnostic) {
	c.Action, c.State, c.Message = v1alpha1.ActionNoOp, v1alpha1.ChangeSkipped, why
	c.Diagnostics = plan.Diagnostics{d}
	c.Drift, c.Refreshed, c.Recorded, c.RecordedSensitive = nil, nil, nil, nil
	c.Importing, c.PreviousAddress, c.Checks, c.Read, c.UpdatesRecord = nil, "", false, false, false
	c.Planned, c.PlannedPrivate, c.PlannedSensitive = nil, nil, nil
	c.Before, c.After, c.AfterUnknown, c.BeforeSensitive, c.AfterSensitive = nil, nil, nil, nil, nil
	c.ReplacePaths, c.SecretsChanged = nil, nil
}

// spread blocks what cannot be done without the changes that are blocked already: what refers to them, which was not even
// planned, and the destroy of what they stand on.
func (pr *proposal) spread(ctx context.Context, changes []*ledger.Change) error {
	index := make(map[string][]*ledger.Change, len(changes)) // old instances with the current one: it may stand on either
	var blocked []*ledger.Change
	for _, c := range changes {
		index[c.Address] = append(index[c.Address], c)
		if c.State == v1alpha1.ChangeSkipped {
			blocked = append(blocked, c)
		}
	}
	if len(blocked) == 0 {
		return nil
	}
	stop := func(c *ledger.Change, because string) error {
		addr, err := plan.ParseAddress(c.Address)
		if err != nil {
			return final(err)
		}
		block(c, "it cannot be changed without "+because+", which is blocked", v1alpha1.Diagnostic{
			Severity: v1alpha1.SeverityWarning, Summary: "Change is blocked", Address: addr.String(),
			Detail: fmt.Sprintf("%s is left as it is, because %s is.", addr, because),
		})
		blocked = append(blocked, c)
		return pr.Ledger.SaveChange(ctx, pr.plan.UID, c)
	}
	// Dependencies come before what depends on them, so one pass finds all that was not planned.
	for _, c := range changes {
		if c.Action != "" {
			continue
		}
		because := "what it refers to"
		for _, d := range c.DependsOn {
			if changes[d].State == v1alpha1.ChangeSkipped {
				because = changes[d].Address
			}
		}
		if err := stop(c, because); err != nil {
			return err
		}
	}
	for next := 0; next < len(blocked); next++ {
		for _, address := range blocked[next].Requires {
			for _, c := range index[address] {
				if c.Action != v1alpha1.ActionDelete && c.Action != v1alpha1.ActionReplace {
					continue
				}
				if err := stop(c, blocked[next].Address); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
