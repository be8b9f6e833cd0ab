package registry

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/server/rights"
)

// maxTargets is the maximum length of each list in a plan's spec; a larger set needs a selector.
const maxTargets = 10_000

// planREST serves Plans. Creating a plan with automatic approval requires the right to approve.
type planREST struct {
	resourceREST
	authorizer authorizer.Authorizer
	backend    *Backend
	mayRead    ReaderFunc
}

func newPlans(c Config) (*planREST, *planStatusREST, error) {
	strategy := kindStrategy[*v1alpha1.Plan, v1alpha1.PlanStatus]{
		ObjectTyper:   c.Codecs.Scheme,
		NameGenerator: names.SimpleNameGenerator,
		namespaced:    true,
		begin: func(ctx context.Context, p *v1alpha1.Plan) {
			beginPlan(ctx, p)
			if p.ApprovesItself() {
				p.Status.AutomaticApproval.ByPolicy = c.requesterMayNotApprove(ctx, p)
			}
		},
		spec:           func(p *v1alpha1.Plan) any { return p.Spec },
		status:         func(p *v1alpha1.Plan) *v1alpha1.PlanStatus { return &p.Status },
		conditions:     func(s *v1alpha1.PlanStatus) *[]metav1.Condition { return &s.Conditions },
		validate:       validatePlan,
		validateUpdate: validatePlanUpdate,
		warn:           warnOfCopy,
		keepOwn: func(s, old *v1alpha1.PlanStatus) {
			// Only the server writes these fields, each through its own subresource.
			s.RequestedBy, s.RequestedAt, s.Stack, s.Approval, s.Approvals, s.Cancel = old.RequestedBy, old.RequestedAt,
				old.Stack, old.Approval, old.Approvals, old.Cancel
			s.AutomaticApproval, s.UploadedObjects = keepAutomatic(s.AutomaticApproval, old.AutomaticApproval),
				old.UploadedObjects
		},
		mayWriteStatus: statusOfPlan,
	}
	store, statusREST, err := newStore(c, "plan", new(v1alpha1.Plan), new(v1alpha1.PlanList), strategy, planTable)
	if err != nil {
		return nil, nil, err
	}
	return &planREST{resourceREST: resourceREST{Store: store, short: "plan", busy: beingApplied},
			authorizer: c.Authorizer, backend: c.Backend, mayRead: c.MayRead},
		&planStatusREST{statusREST, c.MayRead}, nil
}

// keepAutomatic returns the automatic approval to store. A write can withdraw the approval, but cannot grant it.
func keepAutomatic(written, stored *v1alpha1.AutomaticApproval) *v1alpha1.AutomaticApproval {
	if written != nil && stored != nil && stored.Granted && !written.Granted {
		return written
	}
	return stored
}

// statusOfPlan lets only the server write the status of a plan, because users and the server decide by it. Decisions
// and cancellations have their own subresources.
func statusOfPlan(ctx context.Context, _, _ *v1alpha1.Plan) field.ErrorList {
	return statusByServer(ctx, "a plan. To decide or to stop it: kubectl hykube approve, discard or cancel")
}

// Create creates a plan.
func (r *planREST) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc,
	opts *metav1.CreateOptions) (runtime.Object, error) {
	obj, err := r.resourceREST.Create(ctx, obj, r.authorizeAutomatic(validate), opts)
	return r.mayRead.response(ctx, obj, err)
}

// Update updates a plan. A server-side apply may create one.
func (r *planREST) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, create rest.ValidateObjectFunc,
	update rest.ValidateObjectUpdateFunc, force bool, opts *metav1.UpdateOptions) (runtime.Object, bool, error) {
	info = rest.WrapUpdatedObjectInfo(info, func(_ context.Context, obj, _ runtime.Object) (runtime.Object, error) {
		markCopy(obj)
		return obj, nil
	})
	obj, created, err := r.Store.Update(ctx, name, info, r.authorizeAutomatic(create), keepRecordFinalizer(update),
		force, opts)
	obj, err = r.mayRead.response(ctx, obj, err)
	return obj, created, err
}

// keepRecordFinalizer lets only the server remove the finalizer that keeps a plan until its record is complete.
func keepRecordFinalizer(validate rest.ValidateObjectUpdateFunc) rest.ValidateObjectUpdateFunc {
	return func(ctx context.Context, obj, old runtime.Object) error {
		if err := validate(ctx, obj, old); err != nil {
			return err
		}
		p := obj.(*v1alpha1.Plan)
		if byServer(ctx) || slices.Contains(p.Finalizers, v1alpha1.FinalizerRecord) ||
			!slices.Contains(old.(*v1alpha1.Plan).Finalizers, v1alpha1.FinalizerRecord) {
			return nil
		}
		return apierrors.NewInvalid(v1alpha1.Kind("Plan"), p.Name,
			field.ErrorList{field.Forbidden(field.NewPath("metadata", "finalizers"),
				v1alpha1.FinalizerRecord+" stays until the plan has ended and its PlanRecord is written; then the server removes it")})
	}
}

// authorizeAutomatic adds the check of the right to approve to the validation of a plan with automatic approval.
func (r *planREST) authorizeAutomatic(validate rest.ValidateObjectFunc) rest.ValidateObjectFunc {
	return func(ctx context.Context, obj runtime.Object) error {
		if err := validate(ctx, obj); err != nil {
			return err
		}
		p := obj.(*v1alpha1.Plan)
		// A plan of a stack waits for an approval if its requester may not approve it.
		if !p.ApprovesItself() || !p.Status.AutomaticApproval.ByPolicy || p.Status.Stack != nil {
			return nil
		}
		err := mayApprove(ctx, r.authorizer, p,
			`a plan with spec.approval "Automatic" needs it: leave that out, and let another user approve the plan`)
		if !apierrors.IsForbidden(err) {
			return err
		}
		if allowed, aerr := r.backend.Automatic(ctx, p.Namespace); aerr != nil {
			return apierrors.NewInternalError(aerr)
		} else if allowed {
			return nil
		}
		return err
	}
}

// requesterMayNotApprove reports whether the requester of a plan lacks the verb "approve". The requester of a stack's
// plan is the author of the stack.
func (c Config) requesterMayNotApprove(ctx context.Context, p *v1alpha1.Plan) bool {
	who := p.Status.RequestedBy
	if who == nil {
		return true
	}
	right := store.Right{Verb: store.VerbApprove, Namespace: p.Namespace, Group: groupName, Resource: "plans",
		Name: p.Name}
	may, err := rights.Access{Authorizer: c.Authorizer}.May(ctx, *who, right)
	return err != nil || !may
}

// mayApprove returns an error if the user lacks the verb "approve" on a plan.
func mayApprove(ctx context.Context, a authorizer.Authorizer, p *v1alpha1.Plan, advice string) error {
	user, ok := genericapirequest.UserFrom(ctx)
	if !ok {
		return apierrors.NewInternalError(fmt.Errorf("authorize approval of plan %q: the request has no user", p.Name))
	}
	decision, _, err := a.Authorize(ctx, approveAttributes(user, p.Namespace, p.Name))
	if decision == authorizer.DecisionAllow {
		return nil
	}
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("authorize approval of plan %q: %w", p.Name, err))
	}
	return apierrors.NewForbidden(v1alpha1.Resource("plans"), p.Name,
		fmt.Errorf("user %q has no verb \"approve\" on plans in namespace %q; %s", user.GetName(), p.Namespace, advice))
}

// approveAttributes returns the attributes of the verb "approve" on a plan. An empty name means all plans, and an empty
// namespace means all namespaces.
func approveAttributes(who user.Info, namespace, name string) authorizer.AttributesRecord {
	return authorizer.AttributesRecord{
		User: who, Verb: "approve", Namespace: namespace, APIGroup: groupName,
		APIVersion: v1alpha1.SchemeGroupVersion.Version,
		Resource:   "plans", Name: name, ResourceRequest: true,
	}
}

// requester returns the user of the request.
func requester(ctx context.Context) *v1alpha1.Identity {
	user, ok := genericapirequest.UserFrom(ctx)
	if !ok {
		return nil
	}
	return new(rights.IdentityOf(user))
}

// setPlanDefaults sets the defaults of a plan.
func setPlanDefaults(p *v1alpha1.Plan) {
	if p.Spec.Refresh == "" {
		p.Spec.Refresh = v1alpha1.RefreshChanged
		if p.Spec.RefreshOnly {
			p.Spec.Refresh = v1alpha1.RefreshAll
		}
	}
	if p.Spec.Approval == "" {
		p.Spec.Approval = v1alpha1.ApprovalManual
	}
}

func validatePlan(p *v1alpha1.Plan) field.ErrorList {
	errs := validateObjectName(p.Name)
	spec := field.NewPath("spec")
	errs = append(errs, validateEnum(p.Spec.Refresh, spec.Child("refresh"), v1alpha1.RefreshNone,
		v1alpha1.RefreshChanged, v1alpha1.RefreshAll)...)
	errs = append(errs, validateEnum(p.Spec.Approval, spec.Child("approval"), v1alpha1.ApprovalManual,
		v1alpha1.ApprovalAutomatic)...)
	if p.Spec.Selector != nil {
		errs = append(errs, metav1validation.ValidateLabelSelector(p.Spec.Selector,
			metav1validation.LabelSelectorValidationOptions{}, spec.Child("selector"))...)
	}
	errs = append(errs, validateAddresses(p.Spec.Targets, spec.Child("targets"), anyMode)...)
	errs = append(errs, validateAddresses(p.Spec.Exclude, spec.Child("exclude"), anyMode)...)
	errs = append(errs, validateAddresses(p.Spec.Replace, spec.Child("replace"), v1alpha1.ModeManaged)...)
	errs = append(errs, validateAddresses(p.Spec.Invoke, spec.Child("invoke"), v1alpha1.ModeAction)...)
	if len(p.Spec.Targets) > 0 && len(p.Spec.Exclude) > 0 {
		errs = append(errs, field.Invalid(spec.Child("exclude"), field.OmitValueType{},
			"cannot be combined with spec.targets: name either the resources to plan, or those to leave out"))
	}
	errs = append(errs, validateExcluded(p, spec)...)
	if p.Spec.Speculative && p.Spec.Approval == v1alpha1.ApprovalAutomatic {
		errs = append(errs, field.Invalid(spec.Child("approval"), p.Spec.Approval,
			"cannot be combined with spec.speculative: its objects are never recorded, so nothing can be applied"))
	}
	errs = append(errs, validateReads(p, spec)...)
	if of := p.Spec.Shown; of != nil && (of.Name == "" || of.UID == "") {
		errs = append(errs, field.Required(spec.Child("shown"), "it needs the name and the uid of a speculative plan"))
	}
	if p.Spec.RefreshOnly {
		switch {
		case len(p.Spec.Invoke) > 0:
			errs = append(errs, field.Invalid(spec.Child("refreshOnly"), true,
				"cannot be combined with spec.invoke: a plan that only reads runs no actions"))
		case p.Spec.Destroy:
			errs = append(errs, field.Invalid(spec.Child("refreshOnly"), true,
				"cannot be combined with spec.destroy: a plan that only reads destroys nothing"))
		case len(p.Spec.Replace) > 0:
			errs = append(errs, field.Invalid(spec.Child("refreshOnly"), true,
				"cannot be combined with spec.replace: a plan that only reads replaces nothing"))
		case p.Spec.Refresh == v1alpha1.RefreshNone:
			errs = append(errs, field.Invalid(spec.Child("refresh"), p.Spec.Refresh,
				"cannot be combined with spec.refreshOnly: nothing would be read"))
		}
	}
	if p.Spec.Destroy && len(p.Spec.Replace) > 0 {
		errs = append(errs, field.Invalid(spec.Child("destroy"), true,
			"cannot be combined with spec.replace: a plan that destroys replaces nothing"))
	}
	if p.Spec.Destroy && len(p.Spec.Invoke) > 0 {
		errs = append(errs, field.Invalid(spec.Child("destroy"), true,
			"cannot be combined with spec.invoke: a plan that destroys runs no actions"))
	}
	return errs
}

// validateReads validates the read budget of a plan.
func validateReads(p *v1alpha1.Plan, spec *field.Path) field.ErrorList {
	errs := validateReadBudget(p.Spec.ReadBudget, spec.Child("readBudget"))
	switch {
	case p.Spec.ReadBudget == nil && p.Spec.ReadAfter != "":
		errs = append(errs, field.Forbidden(spec.Child("readAfter"), "only with spec.readBudget"))
	case p.Spec.ReadBudget == nil:
	case !p.Spec.RefreshOnly:
		errs = append(errs, field.Forbidden(spec.Child("readBudget"),
			"only with spec.refreshOnly: a plan that left out reads would change resources on old values"))
	case len(p.Spec.Exclude) > 0:
		errs = append(errs, field.Forbidden(spec.Child("readBudget"), "cannot be combined with spec.exclude"))
	}
	return errs
}

// validateExcluded rejects excluded resources in other lists of the spec.
func validateExcluded(p *v1alpha1.Plan, spec *field.Path) field.ErrorList {
	excluded := map[lang.Address]bool{}
	for _, s := range p.Spec.Exclude {
		if a, err := lang.ParseAddress(s); err == nil {
			excluded[a.In(p.Namespace)] = true
		}
	}
	var errs field.ErrorList
	for name, list := range map[string][]string{"replace": p.Spec.Replace, "invoke": p.Spec.Invoke} {
		for i, s := range list {
			if a, err := lang.ParseAddress(s); err == nil && excluded[a.In(p.Namespace)] {
				errs = append(errs, field.Invalid(spec.Child(name).Index(i), s,
					"is left out by spec.exclude; remove it from one of the two"))
			}
		}
	}
	return errs
}

// validatePlanUpdate also keeps the annotations that name a workflow. When a stack is deleted, the server discards the
// plans of its workflow, and a user could otherwise make any plan one of these.
func validatePlanUpdate(p, old *v1alpha1.Plan) (errs field.ErrorList) {
	if !sameSpec(p.Spec, old.Spec) {
		errs = append(errs, field.Forbidden(field.NewPath("spec"),
			"the spec of a plan cannot be changed; create another plan"))
	}
	for _, key := range v1alpha1.WorkflowAnnotations {
		if p.Annotations[key] != old.Annotations[key] {
			errs = append(errs, field.Forbidden(field.NewPath("metadata", "annotations").Key(key),
				"the annotations of a plan that name its workflow cannot be changed; create another plan"))
		}
	}
	return errs
}

func validateEnum[E ~string](value E, path *field.Path, allowed ...E) field.ErrorList {
	for _, a := range allowed {
		if value == a {
			return nil
		}
	}
	return field.ErrorList{field.NotSupported(path, value, allowed)}
}

// anyMode permits addresses of all modes.
const anyMode v1alpha1.Mode = ""

func validateAddresses(addresses []string, path *field.Path, mode v1alpha1.Mode) field.ErrorList {
	if len(addresses) > maxTargets {
		err := field.TooMany(path, len(addresses), maxTargets)
		err.Detail += ". Select more of them with spec.selector (-l), or all resources of the namespace with neither (--all)"
		return field.ErrorList{err}
	}
	var errs field.ErrorList
	seen := make(map[lang.Address]bool, len(addresses))
	for i, s := range addresses {
		a, err := lang.ParseAddress(s)
		if mode == anyMode {
			a, err = lang.ParseTarget(s)
		}
		detail := ""
		switch {
		case err != nil && mode == v1alpha1.ModeAction:
			detail = "must be the address of an action, such as action.sim_reboot.now or action-sim-reboot/now"
		case err != nil:
			detail = "must be the address of a resource, such as sim_network.main or sim-network/main"
		case a.Stored():
			detail = "is not part of a plan: plans read ConfigMaps and Secrets, and never change them"
		case a.Namespace != "":
			detail = "must be in the plan's own namespace: write it without the namespace"
		case mode == v1alpha1.ModeAction && a.Mode != mode:
			detail = "must be the address of an action, such as action.sim_reboot.now: a plan runs only actions"
		case mode == v1alpha1.ModeManaged && a.Mode != "":
			detail = "must be the address of a managed resource, such as sim_network.main: only managed resources can be replaced"
		}
		switch {
		case detail != "":
			errs = append(errs, field.Invalid(path.Index(i), shorten(s), detail))
		case seen[a]:
			errs = append(errs, field.Duplicate(path.Index(i), s))
		}
		seen[a] = true
	}
	return errs
}

// beingApplied returns an error while a plan is being applied, because the plan holds the results of its changes.
func beingApplied(obj runtime.Object) error {
	plan, ok := obj.(*v1alpha1.Plan)
	if !ok || plan.Ended() || !meta.IsStatusConditionTrue(plan.Status.Conditions, v1alpha1.ConditionApproved) {
		return nil
	}
	return fmt.Errorf("it is being applied; wait until it has ended, or cancel it with `kubectl hykube cancel %s -n %s`, then delete it", plan.Name, plan.Namespace)
}
