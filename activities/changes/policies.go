package changes

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/plan"
	"github.com/hykube/hykube/internal/policy"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/store"
)

// earlierPlans is the maximum number of records of earlier plans that the rules of policies can read.
const earlierPlans = 50

// Judged is what policies judge of a plan, besides its Plan object and its stored changes.
type Judged struct {
	// Approvals are the approvals of the plan, or those that it would have.
	Approvals []v1alpha1.PlanApproval
	// Out has the indexes of the changes that the apply will leave out. The policies see neither these, nor those that
	// it has left out.
	Out map[int32]bool
	// Known has the values of changes that are about to be made, or were made, after planning did not know all of them.
	Known map[int32]KnownValue
}

// KnownValue is a value after a change, without masks and without its parts that are still unknown, which Unknown
// names.
type KnownValue struct{ After, Unknown *runtime.RawExtension }

// MaxPolicies is the maximum number of rules in the status of a Plan.
const MaxPolicies = 50

// JudgeWaiting evaluates the current policies for a plan that waits for a decision, with the approvals that it has.
func JudgeWaiting(ctx context.Context, src *scope.Sources, po *v1alpha1.Plan) (*policy.Verdict, error) {
	out, err := NotApprovedIndexes(po.Status.Approvals)
	if err != nil {
		return nil, err
	}
	return Judge(ctx, src, po, Judged{Approvals: po.Status.Approvals, Out: out})
}

// Judge evaluates the current policies for a plan, with values that are not masked. It gives users the groups that they
// have now. A Module with the mode Observe denies the plan if it changes its resources.
func Judge(ctx context.Context, src *scope.Sources, po *v1alpha1.Plan, in Judged) (*policy.Verdict, error) {
	found, set, err := policies(ctx, src, po.Namespace)
	if err != nil {
		return nil, err
	}
	watched, err := observedIn(ctx, src, po.Namespace)
	if err != nil {
		return nil, err
	}
	subject := set.NewSubject(po)
	if set.Empty() && watched.empty() {
		return set.Evaluate(ctx, subject)
	}
	if set.UsesEarlier() {
		if subject.Earlier, err = src.Policies.Earlier(ctx, po.Namespace, earlierPlans); err != nil {
			return nil, fmt.Errorf("read records of plans in namespace %q: %w", po.Namespace, err)
		}
	}
	for c, err := range src.Ledger.Changes(ctx, po.UID, 0) {
		if err != nil {
			return nil, err
		}
		if in.Out[c.Index] || c.Held {
			continue
		}
		watched.add(c)
		if set.Empty() {
			continue
		}
		var values policy.Values
		if set.UsesPlan() {
			if values, err = valuesOf(ctx, src, po, c, in.Known[c.Index]); err != nil {
				return nil, err
			}
		}
		if err := subject.Add(&c.PlanChange, values); err != nil {
			return nil, err
		}
	}
	subject.Requester, _ = currentUser(src, po.Status.RequestedBy)
	for i := range subject.Contributors {
		now, _ := currentUser(src, &subject.Contributors[i])
		subject.Contributors[i] = *now
	}
	for _, a := range in.Approvals {
		if by, ok := currentUser(src, a.By); ok {
			a.By = by
			subject.Approvals = append(subject.Approvals, a)
		}
	}
	subject.NamespaceLabels, subject.Now = found.NamespaceLabels, time.Now()
	verdict, err := set.Evaluate(ctx, subject)
	if err == nil {
		verdict.Results = append(watched.denials(), verdict.Results...)
	}
	return verdict, err
}

// currentUser returns a user with the groups that he has now. It returns false if the token file no longer names the
// user, who then has no groups.
func currentUser(src *scope.Sources, who *v1alpha1.Identity) (*v1alpha1.Identity, bool) {
	if who == nil || src.Users == nil {
		return who, true
	}
	now, ok := src.Users.Current(*who)
	return &now, ok
}

// valuesOf returns the values of a change without masks. known are those after the change, if they are known by now.
func valuesOf(ctx context.Context, src *scope.Sources, po *v1alpha1.Plan, c *ledger.Change,
	known KnownValue) (v policy.Values, err error) {
	v.Type, v.After, v.AfterUnknown = canonicalType(src, &c.PlanChange), known.After, known.Unknown
	made := c.State == v1alpha1.ChangeDone && c.Action != v1alpha1.ActionDelete && c.Action != v1alpha1.ActionForget &&
		policy.Flagged(c.AfterUnknown)
	before, recorded := policy.Flagged(c.BeforeSensitive), policy.Flagged(c.RecordedSensitive)
	var rec *ledger.Instance
	if made || before || recorded {
		ref := c.Object
		if from := c.Preconditions.From; from != nil && !made {
			ref = *from
		}
		if rec, err = src.Ledger.Instance(ctx, ref); err != nil {
			return v, err
		}
	}
	if made && rec.Plan == po.UID && rec.Exists() {
		v.After, v.AfterUnknown = &runtime.RawExtension{Raw: rec.Attributes}, &runtime.RawExtension{Raw: []byte("{}")}
	}
	state := stateBefore(c, rec)
	if recorded && state.Exists() {
		v.Recorded = &runtime.RawExtension{Raw: state.Attributes}
	}
	if c.Refreshed.Exists() {
		state = c.Refreshed
	}
	if before && state.Exists() {
		v.Before = &runtime.RawExtension{Raw: state.Attributes}
	}
	if v.After == nil && policy.Flagged(c.AfterSensitive) && len(c.Planned) > 0 {
		v.After, err = plannedWithoutMasks(src, c)
	}
	return v, err
}

// canonicalType returns the type of a change. A deprecated name counts as the type that replaces it.
func canonicalType(src *scope.Sources, c *v1alpha1.PlanChange) string {
	group, _, _ := strings.Cut(c.Object.APIVersion, "/")
	name, ok := v1alpha1.ProviderOfGroup(group)
	if !ok || c.Mode != "" && c.Mode != v1alpha1.ModeManaged {
		return c.Type
	}
	if e, ok := src.Catalog.Get(name); ok {
		return e.CanonicalType(c.Type)
	}
	return c.Type
}

// stateBefore returns the recorded state that a change was planned with; nil if the record is no longer that state.
func stateBefore(c *ledger.Change, rec *ledger.Instance) *ledger.State {
	if rec == nil {
		return nil
	}
	state, digest := &rec.State, c.Preconditions.State
	if old := rec.FindDeposed(c.Deposed); c.Deposed != "" {
		if old == nil {
			return nil
		}
		state = &old.State
	} else if c.Preconditions.From != nil {
		digest = c.Preconditions.FromState
	}
	if state.Digest() != digest {
		return nil
	}
	return state
}

// plannedWithoutMasks returns the planned values of a change, without those that are unknown; nil if its type is not
// known any more.
func plannedWithoutMasks(src *scope.Sources, c *ledger.Change) (*runtime.RawExtension, error) {
	addr, err := lang.ParseAddress(c.Address)
	if err != nil {
		return nil, err
	}
	block := src.Block(addr)
	if block == nil {
		return nil, nil
	}
	v, err := PlannedValue(c, block)
	if err != nil {
		return nil, err
	}
	after, _, err := plan.WithoutMasks(v)
	return after, err
}

// policies returns the policies for the plans of a namespace. Their rules AllowAutomatic lapse while the author of the
// policy may not approve plans.
func policies(ctx context.Context, src *scope.Sources, namespace string) (*store.PlanPolicies, *policy.Set, error) {
	found, err := src.Policies.Of(ctx, namespace)
	if err != nil {
		return nil, nil, fmt.Errorf("read policies for plans in namespace %q: %w", namespace, err)
	}
	set := policy.NewSet(found.Policies, found.Cluster, found.NamespaceLabels)
	lapse := func(name string, spec v1alpha1.PlanPolicySpec, author *v1alpha1.Identity, where string) error {
		if !policy.AllowsAutomatic(spec) {
			return nil
		}
		why, err := mayNotAllow(ctx, src, author, where)
		if err == nil && why != "" {
			set.Lapse(name, why)
		}
		return err
	}
	for _, p := range found.Policies {
		if err := lapse("PlanPolicy/"+p.Name, p.Spec, p.Status.Author, namespace); err != nil {
			return nil, nil, err
		}
	}
	for _, p := range found.Cluster {
		if err := lapse("ClusterPlanPolicy/"+p.Name, p.Spec.PlanPolicySpec, p.Status.Author, ""); err != nil {
			return nil, nil, err
		}
	}
	return found, set, nil
}

// mayNotAllow returns why a policy of an author may not allow plans to be applied automatically; "" if it may. An empty
// namespace means all namespaces.
func mayNotAllow(ctx context.Context, src *scope.Sources, author *v1alpha1.Identity, namespace string) (string, error) {
	if author == nil || author.Username == "" {
		return "its author is unknown; write it again", nil
	}
	ok, err := src.Access.May(ctx, *author,
		store.Right{Verb: store.VerbApprove, Namespace: namespace, Group: v1alpha1.GroupName, Resource: "plans"})
	if err != nil || ok {
		return "", err
	}
	return fmt.Sprintf("its author %q may not approve these plans any more; let a user who may approve them write the policy", author.Username), nil
}

// AutomaticByPolicy reports whether a policy for the plans of a namespace has a rule with the effect AllowAutomatic.
func AutomaticByPolicy(ctx context.Context, src *scope.Sources, namespace string) (bool, error) {
	_, set, err := policies(ctx, src, namespace)
	return err == nil && set.HasAutomatic(), err
}
