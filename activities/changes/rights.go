package changes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/contributor"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/store"
)

// Verbs returns the verbs that a change requires on the kind of its object. Both the plan's requester and its approver
// need them.
func Verbs(c *ledger.Change) []string {
	var verbs []string
	if c.Importing != nil {
		verbs = append(verbs, store.VerbCreate)
	}
	switch c.Action {
	case v1alpha1.ActionCreate:
		verbs = append(verbs, store.VerbCreate)
	case v1alpha1.ActionUpdate, v1alpha1.ActionInvoke:
		verbs = append(verbs, store.VerbUpdate)
	case v1alpha1.ActionReplace:
		verbs = append(verbs, store.VerbCreate, store.VerbDelete)
	case v1alpha1.ActionDelete, v1alpha1.ActionForget:
		verbs = append(verbs, store.VerbDelete)
	default:
		if c.PreviousAddress != "" {
			return append(verbs, store.VerbUpdate)
		}
		if len(verbs) == 0 {
			return []string{store.VerbGet}
		}
	}
	return verbs
}

// Rights returns all rights that a change requires. These are the verbs on the kind of its object, and "delete" on the
// kind of the object whose infrastructure it takes. The change also requires the verb "use" on its ProviderConfig, and
// on that of the instance that it replaces. rec is the replaced instance, or nil.
func Rights(src *scope.Sources, c *ledger.Change, rec *ledger.Instance) ([]store.Right, error) {
	var out []store.Right
	add := func(ref v1alpha1.ObjectReference, verbs ...string) error {
		right, err := RightTo(src.Objects, ref)
		for _, verb := range verbs {
			right.Verb = verb
			out = append(out, right)
		}
		return err
	}
	if err := add(c.Object, Verbs(c)...); err != nil {
		return nil, err
	}
	if from := c.Preconditions.From; from != nil {
		if err := add(*from, store.VerbDelete); err != nil {
			return nil, err
		}
	}
	if c.ProviderConfig != "" {
		out = append(out, store.UseOf(c.Object.Namespace, c.ProviderConfig))
	}
	if c.Action == v1alpha1.ActionReplace && !c.Forget && rec != nil && rec.ProviderConfig != "" &&
		rec.ProviderConfig != c.ProviderConfig {
		out = append(out, store.UseOf(c.Object.Namespace, rec.ProviderConfig))
	}
	return out, nil
}

// RightTo returns the right to get an object.
func RightTo(objects store.Objects, ref v1alpha1.ObjectReference) (store.Right, error) {
	plural, err := objects.Plural(ref)
	if err != nil {
		return store.Right{}, fmt.Errorf("find the right to an object of kind %q: %w", ref.Kind, err)
	}
	group, _, _ := strings.Cut(ref.APIVersion, "/")
	return store.Right{Verb: store.VerbGet, Namespace: ref.Namespace, Group: group, Resource: plural, Name: ref.Name},
		nil
}

// Actors checks the rights of the plan's requester and approver.
type Actors struct {
	src  *scope.Sources
	plan *v1alpha1.Plan
	// requester is nil if the plan has none.
	requester *store.Asker
	// approvers are all users who approved the plan, except the requester.
	approvers []*store.Asker
	// approve is the right to approve the plan, which each approver must still have. approved is true if the requester
	// is an approver, too.
	approve  store.Right
	approved bool
	// automatic is true if the plan approved itself. Then no person decided, and the contributors of each change need
	// its rights, too.
	automatic bool
}

// ActorsOf returns the actors of a plan. They cache each answer of the authorizer, so use them only for a short time.
func ActorsOf(src *scope.Sources, po *v1alpha1.Plan) *Actors {
	a := &Actors{src: src, plan: po, requester: src.RequesterOf(po), approvers: src.ApproversOf(po),
		approve: approvalOf(po), automatic: ApprovedItself(po)}
	// A plan that a policy allows to be applied automatically needs no right to approve.
	if automatic := po.Status.AutomaticApproval; automatic == nil || !automatic.ByPolicy {
		a.approved = len(po.AllApprovals()) > len(a.approvers)
	}
	return a
}

// Check returns a *StaleError if the requester or the approver lacks a right that a change requires. rec is the same as
// for Rights.
func (a *Actors) Check(ctx context.Context, c *ledger.Change, rec *ledger.Instance) error {
	rights, err := Rights(a.src, c, rec)
	if err != nil {
		return err
	}
	if err := a.require(ctx, rights, a.approve); err != nil {
		return err
	}
	if !a.automatic {
		return a.requireWitness(ctx, c)
	}
	who, missing, err := LackSecretRights(ctx, a.src, a.plan, c)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return Stale(v1alpha1.StaleMissingRights,
			"the plan approved itself, the change gives secrets of other objects to the provider, and the user %q has no right to %s",
			who.String(), store.ListRights(missing))
	}
	return a.requireOfContributors(ctx, c.Contributors, rights)
}

// requireWitness returns a *StaleError if everybody who approved the plan is a user who caused the change, and lacks
// the right to the secrets of other namespaces that it gives to the provider. Such a user would read them with an
// approval of their own.
func (a *Actors) requireWitness(ctx context.Context, c *ledger.Change) error {
	outside := slices.DeleteFunc(slices.Clone(c.Discloses),
		func(o ledger.Origin) bool { return o.Namespace == "" || o.Namespace == a.plan.Namespace })
	rights, err := SecretRights(a.src, outside)
	if err != nil || len(rights) == 0 {
		return err
	}
	caused := causes(a.plan, c.Contributors)
	approvers := a.approvers
	if a.approved && a.requester != nil {
		approvers = append(slices.Clone(approvers), a.requester)
	}
	var lacks store.Right
	who := ""
	for _, approver := range approvers {
		missing, err := approver.Missing(ctx, rights)
		if err != nil {
			return err
		}
		if len(missing) == 0 || !slices.ContainsFunc(caused,
			func(c v1alpha1.Contributor) bool { return contributor.SameUser(c.Identity, approver.Who) }) {
			return nil
		}
		who, lacks = approver.Who.Username, missing[0]
	}
	if who == "" {
		return nil
	}
	return Stale(v1alpha1.StaleMissingRights,
		"the change gives secrets of another namespace to the provider, and the user %q, who caused and approved it, has no right to %s: let another user approve it",
		who, store.ListRights([]store.Right{lacks}))
}

// requireOfContributors returns a *StaleError if a contributor lacks one of the rights.
func (a *Actors) requireOfContributors(ctx context.Context, list []v1alpha1.Contributor, rights []store.Right) error {
	for _, c := range list {
		if c.More {
			return Stale(v1alpha1.StaleMissingRights,
				"the plan approved itself, and the server does not know all users who wrote what the change follows from")
		}
		if a.requester != nil && contributor.SameUser(a.requester.Who, c.Identity) {
			continue
		}
		asker := store.Asker{Access: a.src.Access, Who: c.Identity}
		missing, err := asker.Missing(ctx, rights)
		if err != nil {
			return err
		}
		if len(missing) > 0 {
			return Stale(v1alpha1.StaleMissingRights, "the plan approved itself, and the user %q, who wrote %s, %s",
				c.String(), strings.Join(c.Wrote, ", "), a.src.Lacks(c.Identity, missing))
		}
	}
	return nil
}

// LostRights returns why no approval can apply a plan: its requester may not make plans any more, and lacks a right
// that a change requires. It returns "" for other plans. It reads the changes only for a requester without the right to
// make plans.
func LostRights(ctx context.Context, src *scope.Sources, po *v1alpha1.Plan) (string, error) {
	a := ActorsOf(src, po)
	if a.requester == nil {
		return "", nil
	}
	may, err := a.requester.May(ctx,
		store.Right{Verb: store.VerbCreate, Namespace: po.Namespace, Group: v1alpha1.GroupName, Resource: "plans"})
	if may || err != nil {
		return "", err
	}
	for c, err := range src.Ledger.Changes(ctx, po.UID, 0) {
		if err != nil {
			return "", err
		}
		rights, err := Rights(src, c, nil)
		if err != nil {
			return "", err
		}
		err = a.require(ctx, rights, a.approve)
		if stale, ok := errors.AsType[*StaleError](err); ok {
			return stale.Message, nil
		}
		if err != nil {
			return "", err
		}
	}
	return "", nil
}

// have reports whether the requester and the approvers have all rights.
func (a *Actors) have(ctx context.Context, rights []store.Right) (bool, error) {
	err := a.require(ctx, rights, a.approve)
	if _, stale := errors.AsType[*StaleError](err); stale {
		return false, nil
	}
	return err == nil, err
}

// require returns a *StaleError if the requester or an approver lacks one of the rights. approving are further rights
// that only an approver needs.
func (a *Actors) require(ctx context.Context, rights []store.Right, approving ...store.Right) error {
	if a.requester == nil {
		return Stale(v1alpha1.StaleMissingRights, "the plan has no requester")
	}
	for i, actor := range append([]*store.Asker{a.requester}, a.approvers...) {
		did, needed := "approved", slices.Concat(rights, approving)
		if i == 0 {
			did = "made"
			if !a.approved {
				needed = rights
			}
		}
		missing, err := actor.Missing(ctx, needed)
		if err != nil {
			return err
		}
		if len(missing) > 0 {
			return Stale(v1alpha1.StaleMissingRights, "the user %q, who %s the plan, %s", actor.Who.String(), did,
				a.src.Lacks(actor.Who, missing))
		}
	}
	return nil
}
