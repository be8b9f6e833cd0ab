// Package audit describes the server's own acts for its audit log: calls to providers, with the plan and the users that
// caused them. Package server/auditlog writes the log.
package audit

import (
	"context"
	"strings"
	"time"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/contributor"
)

// Operation is the kind of a call to a provider. It is the verb in the audit log.
type Operation string

// The operations of provider calls that change infrastructure, or the set of objects that Hykube manages.
const (
	Create Operation = "create"
	Update Operation = "update"
	Delete Operation = "delete"
	Import Operation = "import"
	Invoke Operation = "invoke"
	// Open opens an ephemeral resource, such as a session or a temporary password.
	Open Operation = "open"
)

// Call is a call to a provider.
type Call struct {
	Operation Operation
	// Provider is the name of the Provider, and ProviderConfig that of its configuration; it may be empty.
	Provider, ProviderConfig string
	// Type is the Terraform type.
	Type string
	// Object is the object for which the server calls. Plural is the plural of its kind.
	Object v1alpha1.ObjectReference
	Plural string
	Cause  Cause
	// Began is the time at which an earlier process of the server began the call, if the end of that process
	// interrupted it. It is zero for a new call.
	Began time.Time
}

// RecordFunc records a call before it is made. The caller must not make the call after an error, and must call end with
// the call's error after it. For an interrupted call, only end writes a record.
type RecordFunc func(Call) (end func(error), err error)

// Prefix is the prefix of Hykube's annotations of audit events.
const Prefix = "audit.hykube.io/"

// Cause identifies the plan and the users for which the server acts.
type Cause struct {
	// Namespace, Plan and PlanUID identify the plan; empty without one.
	Namespace, Plan, PlanUID string
	// Digest is the digest of the plan's changes; empty while it is being made.
	Digest string
	// Requester made the plan, or sent the request. It is empty if the server acts for itself.
	Requester string
	// Approvers are the users who approved the plan, and Contributors those who wrote what its changes follow from.
	// Automatic is why the plan approved itself, with the rights of the approver; empty if a user decided.
	Approvers, Contributors []string
	Automatic               string
}

// Of returns the cause of the server's acts for a plan. Without a plan, who is the requester. Both may be nil.
func Of(p *v1alpha1.Plan, who *v1alpha1.Identity) Cause {
	c := Cause{}
	if p != nil {
		c.Namespace, c.Plan, c.PlanUID, c.Digest = p.Namespace, p.Name, string(p.UID), p.Status.Digest
		who = p.Status.RequestedBy
		c.Contributors = contributor.Names(p.Status.Contributors)
		if a := p.Status.Approval; a != nil && a.Automatic != nil {
			c.Automatic = a.Automatic.String()
		}
		for _, a := range p.AllApprovals() {
			if a.By != nil {
				c.Approvers = append(c.Approvers, a.By.Username)
			}
		}
	}
	if who != nil {
		c.Requester = who.Username
	}
	return c
}

// Annotations returns the annotations of an audit event.
func (c Cause) Annotations() map[string]string {
	out := map[string]string{}
	for key, value := range map[string]string{
		"plan-namespace": c.Namespace, "plan": c.Plan, "plan-uid": c.PlanUID, "digest": c.Digest,
		"requester": c.Requester, "approvers": strings.Join(c.Approvers, ","),
		"contributors": strings.Join(c.Contributors, ","), "automatic": c.Automatic,
	} {
		if value != "" {
			out[Prefix+key] = value
		}
	}
	return out
}

type causeKey struct{}

// With returns a context for acts of the server with a cause.
func With(ctx context.Context, c Cause) context.Context { return context.WithValue(ctx, causeKey{}, c) }

// From returns the cause of a context. It is the zero Cause if the server acts for itself.
func From(ctx context.Context) Cause {
	c, _ := ctx.Value(causeKey{}).(Cause)
	return c
}
