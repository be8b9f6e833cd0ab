package registry

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	k8saudit "k8s.io/apiserver/pkg/audit"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/audit"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/contributor"
	"github.com/hykube/hykube/internal/policy"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/server/rights"
)

// maxMessage is the maximum length of the message of a decision.
const maxMessage = 4096

// decisionREST serves a subresource for a user's decision about a plan.
type decisionREST struct {
	subresource
	plans   *genericregistry.Store
	mayRead ReaderFunc
	// decide changes the stored plan p according to the plan in the request. dry is true for a dry run.
	decide func(ctx context.Context, p, sent *v1alpha1.Plan, dry bool) error
}

var _ rest.Patcher = (*decisionREST)(nil)

func (r *decisionREST) Get(ctx context.Context, name string, opts *metav1.GetOptions) (runtime.Object, error) {
	obj, err := r.plans.Get(ctx, name, opts)
	return r.mayRead.response(ctx, obj, err)
}

func (r *decisionREST) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo,
	create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc, _ bool,
	opts *metav1.UpdateOptions) (runtime.Object, bool, error) {
	info = rest.WrapUpdatedObjectInfo(info, func(ctx context.Context, obj, old runtime.Object) (runtime.Object, error) {
		sent, p := obj.(*v1alpha1.Plan), old.(*v1alpha1.Plan).DeepCopy()
		p.ManagedFields = sent.ManagedFields
		return p, r.decide(ctx, p, sent, len(opts.DryRun) > 0)
	})
	obj, created, err := updateWhole(ctx, r.plans, name, info, create, update, opts)
	obj, err = r.mayRead.response(ctx, obj, err)
	return obj, created, err
}

// updateWhole stores the plan with the changes of a subresource, including the status.
func updateWhole(ctx context.Context, plans *genericregistry.Store, name string, info rest.UpdatedObjectInfo,
	create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc,
	opts *metav1.UpdateOptions) (runtime.Object, bool, error) {
	store := *plans
	store.UpdateStrategy = decidedStrategy{plans.UpdateStrategy}
	return store.Update(ctx, name, info, create, update, false, opts)
}

// approve serves the subresource "approval": it records the decision in status.approval of the request. A decision
// applies to the digest of the changes that the user has read.
func (c Config) approve(ctx context.Context, p, sent *v1alpha1.Plan, dry bool) error {
	if err := mayApprove(ctx, c.Authorizer, p, "ask a user who has it"); err != nil {
		return err
	}
	if errs := validateApproval(sent.Status.Approval); len(errs) > 0 {
		return apierrors.NewInvalid(v1alpha1.Kind("Plan"), p.Name, errs)
	}
	if !dry { // a dry run decides nothing
		annotateDecision(ctx, p, sent.Status.Approval)
	}
	if err := c.decide(ctx, p, sent.Status.Approval); err != nil {
		return err
	}
	if made := p.Status.Approval; made != nil && made.Automatic != nil && !dry {
		k8saudit.AddAuditAnnotation(ctx, audit.Prefix+"automatic", made.Automatic.String())
	}
	return nil
}

// decide records a decision in a plan if the plan permits one. It rejects an approval if a change is blocked or stale,
// unless the approval is partial.
func (c Config) decide(ctx context.Context, p *v1alpha1.Plan, sent *v1alpha1.PlanApproval) error {
	if repeats(ctx, p, sent) {
		return nil // a client repeats its decision if the response was lost
	}
	if err := mayDecide(ctx, p, sent); err != nil {
		return err
	}
	leftOut := ""
	if sent.Decision == v1alpha1.DecisionApproved {
		found, err := c.Verify(ctx, p)
		if apierrors.ReasonForError(err) != metav1.StatusReasonUnknown {
			return err
		}
		if err != nil {
			return apierrors.NewInternalError(fmt.Errorf("verify plan %q: %w", p.Name, err))
		}
		if byServer(ctx) && found.Person != "" {
			return apierrors.NewForbidden(v1alpha1.Resource("plans"), p.Name,
				errors.New("a person must approve it: "+found.Person))
		}
		if err := checkApplicable(p, found, sent.Partial); err != nil {
			return err
		}
		if err := c.authorizeChanges(ctx, p, sent, found.Rights); err != nil {
			return err
		}
		if sent.Partial {
			if leftOut, err = changes.FormatIndexes(found.Out); err != nil {
				return apierrors.NewConflict(v1alpha1.Resource("plans"), p.Name, err)
			}
		}
	}
	decision := v1alpha1.PlanApproval{
		Decision: sent.Decision, Digest: p.Status.Digest, Partial: sent.Partial, LeftOut: leftOut,
		Message: sent.Message, By: decider(ctx, sent), At: new(metav1.Now()),
	}
	if sent.Decision == v1alpha1.DecisionApproved {
		if more, err := applyPolicies(ctx, p, decision, c.Backend.Judge); err != nil || more {
			return err
		}
	}
	if byServer(ctx) {
		decision.Automatic = automaticDecision(p)
	}
	p.Status.Approval = &decision
	recordDecision(p)
	return nil
}

// authorizeChanges returns a Forbidden error if the approving user lacks a right that the plan's changes require. If
// the server approves for the plan's requester, the requester also needs the verb "approve". No user needs that verb if
// a policy allows the server to apply the plan.
func (c Config) authorizeChanges(ctx context.Context, p *v1alpha1.Plan, sent *v1alpha1.PlanApproval,
	needed iter.Seq2[store.Right, error]) error {
	who := decider(ctx, sent)
	if who == nil {
		return apierrors.NewInternalError(fmt.Errorf("authorize approval of plan %q: the request has no user", p.Name))
	}
	asker := store.Asker{Access: rights.Access{Authorizer: c.Authorizer}, Who: *who}
	missing, err := asker.MissingOf(ctx, needed)
	if err == nil && byServer(ctx) && !p.Status.AutomaticApproval.ByPolicy {
		var toApprove []store.Right
		toApprove, err = asker.Missing(ctx,
			[]store.Right{{Verb: store.VerbApprove, Namespace: p.Namespace, Group: groupName, Resource: "plans",
				Name: p.Name}})
		missing = append(missing, toApprove...)
	}
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("authorize approval of plan %q: %w", p.Name, err))
	}
	if len(missing) == 0 {
		return nil
	}
	return apierrors.NewForbidden(v1alpha1.Resource("plans"), p.Name, fmt.Errorf(
		"user %q has no right to %s, and an approval needs the verb of each change; ask for the verbs, or let another user approve the plan",
		who.Username, store.ListRights(missing)))
}

// annotateDecision adds the decision, and the digest of the plan's changes, to the audit event of the request.
func annotateDecision(ctx context.Context, p *v1alpha1.Plan, sent *v1alpha1.PlanApproval) {
	k8saudit.AddAuditAnnotations(ctx, audit.Prefix+"decision", string(sent.Decision), audit.Prefix+"plan-uid",
		string(p.UID))
	// The first attempt may have read an older plan from the cache, and an annotation cannot be changed afterwards.
	if p.Status.Digest != "" {
		k8saudit.AddAuditAnnotation(ctx, audit.Prefix+"digest", p.Status.Digest)
	}
	if by := decider(ctx, sent); by != nil {
		k8saudit.AddAuditAnnotation(ctx, audit.Prefix+"decider", by.Username)
	}
	if names := contributor.Names(p.Status.Contributors); len(names) > 0 {
		k8saudit.AddAuditAnnotation(ctx, audit.Prefix+"contributors", strings.Join(names, ","))
	}
}

// repeats reports whether a decision is the one that the plan already has, by a user who took part in it. Another
// user's would be in the audit log although it does not count. The server may find that a user has approved an
// automatic plan before it.
func repeats(ctx context.Context, p *v1alpha1.Plan, sent *v1alpha1.PlanApproval) bool {
	made, by := p.Status.Approval, requester(ctx)
	if made == nil || made.Decision != sent.Decision || made.Partial != sent.Partial ||
		sent.Digest != "" && made.Digest != sent.Digest {
		return false
	}
	same := func(a v1alpha1.PlanApproval) bool { return nameOf(a.By) == nameOf(by) }
	return byServer(ctx) || same(*made) || made.Decision == v1alpha1.DecisionApproved &&
		slices.ContainsFunc(p.Status.Approvals, same)
}

// mayDecide returns the error for a decision that the state of the plan does not permit, or that is about other
// changes.
func mayDecide(ctx context.Context, p *v1alpha1.Plan, sent *v1alpha1.PlanApproval) error {
	refuse := func(format string, args ...any) error {
		return apierrors.NewConflict(v1alpha1.Resource("plans"), p.Name, fmt.Errorf(format, args...))
	}
	verb := map[v1alpha1.Decision]string{v1alpha1.DecisionApproved: "approved", v1alpha1.DecisionDiscarded: "discarded"}
	if made := p.Status.Approval; made != nil {
		return refuse("it was already %s by %s; make a new plan to decide again", verb[made.Decision], nameOf(made.By))
	}
	if err := refuseSpeculative(p, sent.Decision); err != nil {
		return err
	}
	planned := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionPlanned)
	switch {
	case planned != nil && planned.Status == metav1.ConditionFalse:
		return refuse("planning failed, so it cannot be approved or discarded; correct the errors in its conditions, and make a new plan")
	case planned == nil || planned.Status != metav1.ConditionTrue || p.Status.Digest == "":
		return refuse("it is still being planned; wait for its condition Planned")
	case p.Status.Cancel != nil:
		return refuse("it was cancelled; make a new plan")
	case byServer(ctx) && !p.ApprovesItself():
		return refuse("it waits for an approval")
	case p.Status.StalledFor() == v1alpha1.ReasonSuperseded, p.Status.StalledFor() == v1alpha1.ReasonDiscarded:
		return refuse("%s", meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionStalled).Message)
	}
	if ready := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady); ready != nil &&
		ready.Status == metav1.ConditionTrue {
		return refuse("it has no changes")
	}
	if sent.Decision == v1alpha1.DecisionApproved {
		if meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionStale) {
			return refuse("it is stale: %s Make a new plan",
				meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionStale).Message)
		}
		if sent.Digest == "" {
			return apierrors.NewInvalid(v1alpha1.Kind("Plan"), p.Name, field.ErrorList{
				field.Required(field.NewPath("status", "approval", "digest"),
					"the value of status.digest in the plan that you read")})
		}
	}
	if sent.Digest != "" && sent.Digest != p.Status.Digest {
		return refuse("the decision is for changes with the digest %s, but the plan's digest is %s; read the plan again", shorten(sent.Digest), p.Status.Digest)
	}
	return nil
}

// maxCauses is the maximum number of changes in an error.
const maxCauses = 5

// checkApplicable returns an error for an approval if changes cannot be applied as planned. For a partial approval, it
// returns one only if no change is left.
func checkApplicable(p *v1alpha1.Plan, found changes.Verification, partial bool) error {
	obstacles := len(found.Blocked) + len(found.Stale)
	if obstacles == 0 || partial && found.Left > 0 {
		return nil
	}
	var causes []metav1.StatusCause
	var texts []string
	add := func(kind metav1.CauseType, what string, obstacles []changes.Obstacle) {
		var named []string
		for i, o := range obstacles {
			if i == maxCauses {
				named = append(named, fmt.Sprintf("and %d more", len(obstacles)-i))
				break
			}
			named = append(named, o.Address+": "+o.Why)
			causes = append(causes, metav1.StatusCause{Type: kind, Field: o.Address, Message: o.Why})
		}
		if len(obstacles) > 0 {
			verb := "are"
			if len(obstacles) == 1 {
				verb = "is"
			}
			texts = append(texts, fmt.Sprintf("%d of its changes %s %s (%s)", len(obstacles), verb, what,
				strings.Join(named, "; ")))
		}
	}
	add(v1alpha1.CauseStale, "stale", found.Stale)
	add(v1alpha1.CauseBlocked, "blocked", found.Blocked)
	switch found.Dependants {
	case 0:
	case 1:
		texts = append(texts, "1 more needs one of these")
	default:
		texts = append(texts, fmt.Sprintf("%d more need one of these", found.Dependants))
	}
	advice := fmt.Sprintf("make a new plan, or approve the %d other changes with status.approval.partial (--partial)",
		found.Left)
	switch {
	case found.Left == 0:
		advice = "no other change can be applied; " + unblock(found)
		causes = append(causes, metav1.StatusCause{Type: v1alpha1.CauseNothingLeft,
			Message: "no other change can be applied"})
	case found.Left == 1:
		advice = "make a new plan, or approve the other change with status.approval.partial (--partial)"
	}
	err := apierrors.NewConflict(v1alpha1.Resource("plans"), p.Name,
		fmt.Errorf("%s: %s", strings.Join(texts, ", and "), advice))
	err.ErrStatus.Details.Causes = causes
	return err
}

// unblock returns what to do if no change of a plan can be applied. A new plan alone does not help against a block.
func unblock(found changes.Verification) string {
	if len(found.Blocked) == 0 {
		return "make a new plan"
	}
	return "first remove the cause of each block (for lifecycle.preventDestroy: remove it, or undo what forces the destroy), then make a new plan"
}

// decider returns the user of the request. For a plan with automatic approval, where the server makes the request, it
// returns the plan's creator.
func decider(ctx context.Context, sent *v1alpha1.PlanApproval) *v1alpha1.Identity {
	if byServer(ctx) && sent.By != nil {
		return sent.By
	}
	return requester(ctx)
}

// automaticDecision returns why a plan approves itself. Its policies must have been evaluated.
func automaticDecision(p *v1alpha1.Plan) *v1alpha1.AutomaticDecision {
	why := &v1alpha1.AutomaticDecision{Stack: p.StackName()}
	if rule := policy.VerdictOf(p).Allowed(); rule != nil {
		why.Rule, why.RuleAuthor = rule.Rule, rule.Author
	}
	return why
}

// recordDecision sets the conditions for a decision.
func recordDecision(p *v1alpha1.Plan) {
	approval := p.Status.Approval
	if !slices.Contains(p.Finalizers, v1alpha1.FinalizerRecord) {
		p.Finalizers = append(p.Finalizers, v1alpha1.FinalizerRecord)
	}
	c, g, by := &p.Status.Conditions, p.Generation, nameOf(approval.By)
	if approval.Decision == v1alpha1.DecisionDiscarded {
		message := fmt.Sprintf("Discarded by %s.", by)
		condition.Set(c, g, v1alpha1.ConditionApproved, false, v1alpha1.ReasonDiscarded, message)
		condition.Stalled(c, g, v1alpha1.ReasonDiscarded, message)
		return
	}
	reason, message := v1alpha1.ReasonApproved, fmt.Sprintf("Approved by %s.", by)
	if approval.Partial {
		message = fmt.Sprintf("Approved by %s, without blocked and stale changes.", by)
	}
	if why := approval.Automatic; why != nil {
		reason, message = v1alpha1.ReasonAutomatic,
			fmt.Sprintf("The plan approved itself, with the rights of %s: %s.", by, why)
	}
	condition.Set(c, g, v1alpha1.ConditionApproved, true, reason, message)
	condition.Reconciling(c, g, v1alpha1.ReasonApproved, "Waiting to be applied.")
}

// awaitMore sets the conditions of a plan that needs further approvals.
func awaitMore(p *v1alpha1.Plan, missing string) {
	condition.Waiting(&p.Status.Conditions, p.Generation, v1alpha1.ReasonAwaitingApproval,
		fmt.Sprintf("Approved by %s. %s", nameOf(p.Status.Approvals[len(p.Status.Approvals)-1].By), missing))
}

func validateApproval(sent *v1alpha1.PlanApproval) field.ErrorList {
	path := field.NewPath("status", "approval")
	if sent == nil {
		return field.ErrorList{field.Required(path, "a decision, and the digest of the plan")}
	}
	errs := validateEnum(sent.Decision, path.Child("decision"), v1alpha1.DecisionApproved, v1alpha1.DecisionDiscarded)
	if sent.Partial && sent.Decision == v1alpha1.DecisionDiscarded {
		errs = append(errs, field.Invalid(path.Child("partial"), true,
			"is only for the decision Approved: a plan can only be discarded as a whole"))
	}
	if len(sent.Message) > maxMessage {
		errs = append(errs, field.TooLong(path.Child("message"), "", maxMessage))
	}
	return errs
}

func nameOf(who *v1alpha1.Identity) string {
	if who == nil {
		return "an unknown user"
	}
	return who.String()
}

// cancel serves the subresource "cancel": the plan starts no further change. It ignores the request body.
func cancel(ctx context.Context, p, _ *v1alpha1.Plan, dry bool) error {
	if !dry {
		annotateDecision(ctx, p, &v1alpha1.PlanApproval{Decision: v1alpha1.ReasonCancelled})
	}
	switch {
	case p.Status.Cancel != nil:
		return nil // already cancelled
	case p.Ended():
		return apierrors.NewConflict(v1alpha1.Resource("plans"), p.Name,
			fmt.Errorf("it has ended, so there is nothing to cancel"))
	}
	p.Status.Cancel = &v1alpha1.PlanCancel{By: requester(ctx), At: new(metav1.Now())}
	if meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionPlanned) && p.Status.Approval == nil {
		// No workflow is running that would set the outcome.
		condition.Stalled(&p.Status.Conditions, p.Generation, v1alpha1.ReasonCancelled,
			fmt.Sprintf("Cancelled by %s before its approval. Make a new plan.", nameOf(p.Status.Cancel.By)))
		return nil
	}
	condition.Reconciling(&p.Status.Conditions, p.Generation, v1alpha1.ReasonCancelling,
		fmt.Sprintf("Cancelled by %s. No further change starts; the server waits for running calls.",
			nameOf(p.Status.Cancel.By)))
	return nil
}

// decidedStrategy permits the changes of a subresource, including the status.
type decidedStrategy struct{ rest.RESTUpdateStrategy }

func (decidedStrategy) PrepareForUpdate(context.Context, runtime.Object, runtime.Object) {}
