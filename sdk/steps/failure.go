package steps

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"go.temporal.io/sdk/temporal"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/hykube/hykube/api/v1alpha1"
)

// Types of the errors of steps. Temporal does not retry them, because a retry cannot succeed. All other errors are
// temporary, such as that of a server that does not answer. Temporal retries the step after those until its timeout.
const (
	// PlanFailed: planning failed. The condition Ready of the plan says why.
	PlanFailed = "PlanFailed"
	// PolicyDenied: rules of policies deny the plan, or do not count the approval.
	PolicyDenied = "PolicyDenied"
	// Blocked: lifecycle.preventDestroy forbids changes of the plan.
	Blocked = "Blocked"
	// Discarded: a user discarded the plan.
	Discarded = "Discarded"
	// Superseded: a later plan took the place of this one before a decision.
	Superseded = "Superseded"
	// Stale: an object or a recorded state changed after planning. Make a new plan.
	Stale = "Stale"
	// Cancelled: a user cancelled the plan.
	Cancelled = "Cancelled"
	// ApplyFailed: changes of the plan failed, or their outcome is unknown.
	ApplyFailed = "ApplyFailed"
	// Approved: the plan was approved, so it cannot be discarded.
	Approved = "Approved"
	// Stalled: the object will not become ready until a user acts.
	Stalled = "Stalled"
	// Forbidden: the user of the worker lacks a right. The message names it.
	Forbidden = "Forbidden"
	// Invalid: the server, or the step itself, refuses the input.
	Invalid = "Invalid"
	// Conflict: another field manager owns a field, or another object has the name of the step's plan.
	Conflict = "Conflict"
	// NotFound: an object that the step needs does not exist.
	NotFound = "NotFound"
)

// Is reports whether an error of a step has the type, such as Stale. It also finds the type in Temporal's errors that
// wrap it.
func Is(err error, failure string) bool {
	e, ok := errors.AsType[*temporal.ApplicationError](err)
	return ok && e.Type() == failure
}

// PlanOf returns the plan that an error is about. ok is false if the error names none. With it, a workflow can discard
// a plan that a policy denies.
func PlanOf(err error) (ref PlanRef, ok bool) {
	e, isFailure := errors.AsType[*temporal.ApplicationError](err)
	if !isFailure || !e.HasDetails() || e.Details(&ref) != nil {
		return PlanRef{}, false
	}
	return ref, ref.Name != ""
}

func failure(kind, format string, args ...any) error {
	return temporal.NewNonRetryableApplicationError(fmt.Sprintf(format, args...), kind, nil)
}

// failed returns the error about a plan. The message is that of the condition with the reason. It has no values of
// objects, because it becomes part of the history of the workflow. The parameter what is empty if that message already
// says what happened, such as "Discarded by alice.".
func failed(kind string, p *v1alpha1.Plan, what string) error {
	message := fmt.Sprintf("plan %q in namespace %q", p.Name, p.Namespace)
	if what != "" {
		message += " " + what
	}
	switch why := reason(p); {
	case why != "":
		message += ": " + strings.TrimSuffix(why, ".")
	case what == "":
		message += ": " + kind
	}
	message += fmt.Sprintf(". To read it: kubectl hykube status %s -n %s", p.Name, p.Namespace)
	return temporal.NewNonRetryableApplicationError(message, kind, nil, refer(p))
}

// reason returns the most specific message of the conditions of a plan that stopped.
func reason(p *v1alpha1.Plan) string {
	for _, t := range []string{v1alpha1.ConditionStale, v1alpha1.ConditionStalled, v1alpha1.ConditionApplied,
		v1alpha1.ConditionPlanned, v1alpha1.ConditionReady} {
		if c := meta.FindStatusCondition(p.Status.Conditions, t); c != nil && c.Message != "" {
			return c.Message
		}
	}
	return ""
}

// explain converts an error of the API to an error with a type. Temporal retries an error without a type. An error with
// a type stays unchanged, because Temporal reads only the type of the outermost error.
func explain(what string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if failure, typed := errors.AsType[*temporal.ApplicationError](err); typed {
		return failure
	}
	kind := ""
	switch {
	case apierrors.HasStatusCause(err, v1alpha1.CausePolicy):
		kind = PolicyDenied
	case apierrors.HasStatusCause(err, v1alpha1.CauseStale):
		kind = Stale
	case apierrors.HasStatusCause(err, v1alpha1.CauseBlocked):
		kind = Blocked
	case apierrors.IsForbidden(err):
		kind = Forbidden
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		kind = NotFound
	case apierrors.IsConflict(err):
		kind = Conflict
	case invalid(err):
		kind = Invalid
	default:
		return fmt.Errorf("%s: %w", what, err)
	}
	return failure(kind, "%s: %v", what, err)
}

// invalid reports whether the server refused the request for its content, so that a retry would fail, too.
func invalid(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	switch status.Status().Code {
	case http.StatusBadRequest, http.StatusMethodNotAllowed, http.StatusRequestEntityTooLarge,
		http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return true
	}
	return false
}
