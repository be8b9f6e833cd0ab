package changes

import (
	"errors"
	"fmt"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/resource"
)

// StaleError is the error for a change whose preconditions no longer hold.
type StaleError struct {
	Reason v1alpha1.StaleReason
	// Message describes for users what changed.
	Message string
}

func (e *StaleError) Error() string { return e.Message + "; make a new plan" }

// Stale returns a *StaleError.
func Stale(reason v1alpha1.StaleReason, format string, args ...any) error {
	return &StaleError{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// StaleReasonOf returns the reason of a *StaleError; "" for other errors.
func StaleReasonOf(err error) v1alpha1.StaleReason {
	if stale, ok := errors.AsType[*StaleError](err); ok {
		return stale.Reason
	}
	return ""
}

// The errors of stale changes that several checks find.
var (
	ErrObjectDeleted = Stale(v1alpha1.StaleObjectDeleted, "the object was deleted after the plan was made")
	ErrStateChanged  = Stale(v1alpha1.StaleStateChanged, "the recorded state changed after the plan was made")
	ErrPlanRunning   = Stale(v1alpha1.StalePlanRunning, "another plan is changing this resource")
	ErrCreateUnknown = Stale(v1alpha1.StaleCreateUnknown,
		"another plan left the outcome of its create unknown; see the conditions of the object")
)

// ConfigChanged returns the *StaleError for a ProviderConfig that changed after planning.
func ConfigChanged(name string) error {
	return Stale(v1alpha1.StaleProviderConfigChanged,
		"the ProviderConfig %q, or a ConfigMap or Secret that it refers to, was changed after the plan was made", name)
}

// CheckConfigName returns a *StaleError if the ProviderConfig that a change would use is not the planned one.
func CheckConfigName(c *ledger.Change, name string) error {
	if name != c.ProviderConfig {
		return Stale(v1alpha1.StaleProviderConfigChanged, "it would use the ProviderConfig %q, but the plan uses %q",
			name, c.ProviderConfig)
	}
	return nil
}

// CheckProvider returns a *StaleError if a change was planned with another version of the provider.
func CheckProvider(c *ledger.Change, r *resource.Resource) error {
	if r.Entry.Package.Version != c.ProviderVersion {
		return Stale(v1alpha1.StaleProviderChanged, "the provider is now version %s, and the plan was made with %s",
			r.Entry.Package.Version, c.ProviderVersion)
	}
	return nil
}
