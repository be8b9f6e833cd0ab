package session

import (
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// Stoppable is the lease of a provider's process that can be asked to stop, see provider.Lease.
type Stoppable interface {
	Stop()
	Stopped() bool
}

// Session is a configured provider, with the permission to make a call.
type Session struct {
	tfprotov6.ProviderServer
	// Config is nil when the provider is used without a ProviderConfig.
	Config *v1alpha1.ProviderConfig
	// Known is false while the plan does not know all that the provider is configured with.
	Known   bool
	Release func()
}

// ConfigName is the name of the ProviderConfig; empty when there is none.
func (l *Session) ConfigName() string {
	if l.Config == nil {
		return ""
	}
	return l.Config.Name
}

// Stopped says whether the provider was asked to stop what it does.
func (l *Session) Stopped() bool {
	p, ok := l.ProviderServer.(Stoppable)
	return ok && p.Stopped()
}

// Transient says whether the same call may succeed a little later. For a call that changes infrastructure that is not enough to
// make it again.
func Transient(err error) bool { return diag.IsFailure(err, diag.Throttled, diag.Unreachable) }

// Throttled says whether a provider's API turned a call away before doing anything.
func Throttled(err error) bool { return diag.IsFailure(err, diag.Throttled) }

// Width bounds the calls of one plan that are under way at once, over all provider configurations.
const Width = 32

// Attempts bounds how often a call is made when it may succeed later.
const Attempts = 5
