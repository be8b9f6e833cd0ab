package registry

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/core"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/apis/rbac"
	rbacvalidation "k8s.io/kubernetes/pkg/apis/rbac/validation"
	kjson "sigs.k8s.io/json"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/fair"
	"github.com/hykube/hykube/internal/fieldnames"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/policy"
	"github.com/hykube/hykube/internal/provider/trust"
	"github.com/hykube/hykube/internal/schema"
	"github.com/hykube/hykube/internal/suggest"
)

// CheckFunc validates objects of the providers' kinds without recording them. Objects of other kinds serve as targets
// of references. It returns the error of ctx if that ends first.
type CheckFunc func(ctx context.Context, objects []*unstructured.Unstructured) ([]v1alpha1.ValidationProblem, error)

// maxCheckTime is the maximum time for one Validation. Every user may create one, and expressions take time.
const maxCheckTime = 20 * time.Second

// validations serves Validations. It limits their concurrency, so that processors remain for other requests. The users
// share the slots, and one user never has all.
type validations struct {
	slots *fair.Slots
	mu    sync.Mutex
	// running counts the current requests of each user. A user without one has no entry.
	running map[string]int
	check   CheckFunc
	// config returns the schema of a provider's configuration, or nil if the provider is not installed.
	config func(provider string) *schema.Block
	// protected are directories of the server.
	protected []string
	trust     *trust.Policy
}

// newValidations returns the storage for Validations.
func newValidations(c Config) rest.Storage {
	slots := max(2, goruntime.GOMAXPROCS(0)/2)
	r := &validations{slots: fair.NewLimited(slots, slots-1), running: map[string]int{}, check: c.Check,
		config: c.ConfigBlock, protected: c.Protected, trust: c.Trust}
	return answeredREST[*v1alpha1.Validation]{
		rest.NewDefaultTableConvertor(v1alpha1.Resource("validations")), "validation",
		func() *v1alpha1.Validation { return new(v1alpha1.Validation) }, r.answer,
	}
}

func (r *validations) answer(ctx context.Context, v *v1alpha1.Validation, _ rest.ValidateObjectFunc,
	_ *metav1.CreateOptions) error {
	v.Status = v1alpha1.ValidationStatus{}
	objects := make([]*unstructured.Unstructured, len(v.Spec.Objects))
	for i, raw := range v.Spec.Objects {
		u := &unstructured.Unstructured{}
		if err := kjson.UnmarshalCaseSensitivePreserveInts(raw.Raw, &u.Object); err != nil || u.Object == nil {
			return apierrors.NewInvalid(v1alpha1.Kind("Validation"), v.Name, field.ErrorList{
				field.Invalid(field.NewPath("spec", "objects").Index(i), field.OmitValueType{}, "must be an object")})
		}
		if u.GetNamespace() == "" && !clusterScoped(u.GetKind()) {
			u.SetNamespace(v.Namespace)
		}
		objects[i] = u
	}
	problems, err := r.checkInSlot(ctx, objects)
	if err != nil {
		return err
	}
	slices.SortStableFunc(problems, func(a, b v1alpha1.ValidationProblem) int { return int(a.Index - b.Index) })
	v.Status.Problems = problems
	return nil
}

// maxValidations is the maximum number of concurrent validations of a user. A validation occupies a seat of the level
// "hykube-heavy" while it waits for a slot, and other users need some of these seats.
const maxValidations = 3

// enter counts a request of a user until leave is called. ok is false if the user has too many.
func (r *validations) enter(user string) (leave func(), ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running[user] == maxValidations {
		return nil, false
	}
	r.running[user]++
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.running[user]--; r.running[user] == 0 {
			delete(r.running, user)
		}
	}, true
}

// checkInSlot waits for a slot and validates the objects.
func (r *validations) checkInSlot(ctx context.Context,
	objects []*unstructured.Unstructured) ([]v1alpha1.ValidationProblem, error) {
	name := ""
	if user, ok := genericapirequest.UserFrom(ctx); ok {
		name = user.GetName()
	}
	leave, ok := r.enter(name)
	if !ok {
		return nil, apierrors.NewTooManyRequests(
			fmt.Sprintf("user %q already has %d validations in progress; try again", name, maxValidations), 5)
	}
	defer leave()
	resume := fair.Pause(ctx) // the wait needs no processor
	slot, err := r.slots.Acquire(ctx, name)
	resume()
	if err != nil {
		return nil, apierrors.NewTooManyRequests("other validations keep the server busy; try again", 10)
	}
	defer slot.Release()
	ctx, cancel := context.WithTimeout(ctx, maxCheckTime)
	defer cancel()
	problems, err := r.check(ctx, objects)
	for i, u := range objects {
		if ctx.Err() != nil {
			break
		}
		for _, p := range r.fixedKindProblems(ctx, u) {
			p.Index = int32(i)
			problems = append(problems, p)
		}
	}
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return nil, apierrors.NewRequestEntityTooLargeError(
			fmt.Sprintf("the check takes longer than %s; send fewer objects at once, or use fewer loops", maxCheckTime))
	}
	return problems, nil
}

// clusterScoped reports whether a fixed kind has no namespace. The names of dynamic kinds contain a dash and never
// match.
func clusterScoped(kind string) bool {
	return slices.Contains([]string{"Provider", "ClusterPlanPolicy", "Namespace", "ClusterRole", "ClusterRoleBinding",
		"FlowSchema", "PriorityLevelConfiguration"}, kind)
}

// fixedKindProblems validates an object of a fixed kind and ignores others.
func (r *validations) fixedKindProblems(ctx context.Context,
	u *unstructured.Unstructured) []v1alpha1.ValidationProblem {
	var errs field.ErrorList
	var out []v1alpha1.ValidationProblem
	switch u.GroupVersionKind() {
	case v1alpha1.SchemeGroupVersion.WithKind("Provider"):
		p := &v1alpha1.Provider{}
		if out = decodeStrictly(u, p); out == nil {
			errs = validateProvider(p, r.protected)
			if err := checkTrust(r.trust, p); len(errs) == 0 && err != nil {
				errs = append(errs, field.Forbidden(field.NewPath("spec", "source"), err.Error()))
			}
		}
	case v1alpha1.SchemeGroupVersion.WithKind("ProviderConfig"):
		pc := &v1alpha1.ProviderConfig{}
		if out = decodeStrictly(u, pc); out == nil {
			unknown, others := argumentProblems(ctx, r.config(pc.Spec.Provider), pc)
			errs = slices.Concat(validateProviderConfig(pc), unknown, others)
		}
	case v1alpha1.SchemeGroupVersion.WithKind("Plan"):
		p := &v1alpha1.Plan{}
		if out = decodeStrictly(u, p); out == nil {
			setPlanDefaults(p)
			errs = validatePlan(p)
		}
	case v1alpha1.SchemeGroupVersion.WithKind("Notification"):
		n := &v1alpha1.Notification{}
		if out = decodeStrictly(u, n); out == nil {
			setNotificationDefaults(n)
			errs = validateNotification(n)
		}
	case v1alpha1.SchemeGroupVersion.WithKind("PlanPolicy"):
		p := &v1alpha1.PlanPolicy{}
		if out = decodeStrictly(u, p); out == nil {
			errs = policy.Validate(p.Spec, field.NewPath("spec"))
		}
	case v1alpha1.SchemeGroupVersion.WithKind("ClusterPlanPolicy"):
		p := &v1alpha1.ClusterPlanPolicy{}
		if out = decodeStrictly(u, p); out == nil {
			errs = append(policy.Validate(p.Spec.PlanPolicySpec, field.NewPath("spec")),
				validateNamespaceSelector(p)...)
		}
	default:
		return builtinKindProblems(u)
	}
	for _, e := range errs {
		out = append(out, problem(e.Field, e.ErrorBody()))
	}
	return out
}

// builtinKindProblems validates an object of a Kubernetes kind and ignores others.
func builtinKindProblems(u *unstructured.Unstructured) []v1alpha1.ValidationProblem {
	obj, err := legacyscheme.Scheme.New(u.GroupVersionKind())
	if err != nil {
		return nil
	}
	out := decodeStrictly(u, obj)
	if out != nil {
		return out
	}
	legacyscheme.Scheme.Default(obj)
	internal, err := legacyscheme.Scheme.ConvertToVersion(obj, runtime.InternalGroupVersioner)
	if err != nil {
		return []v1alpha1.ValidationProblem{problem("", err.Error())}
	}
	var errs field.ErrorList
	switch o := internal.(type) {
	case *core.Namespace:
		errs = corevalidation.ValidateNamespace(o)
	case *core.ConfigMap:
		errs = corevalidation.ValidateConfigMap(o)
	case *core.Secret:
		o.Type = core.SecretTypeOpaque // do not check the data that other types require
		errs = corevalidation.ValidateSecret(o)
	case *rbac.Role:
		errs = rbacvalidation.ValidateRole(o)
	case *rbac.RoleBinding:
		errs = rbacvalidation.ValidateRoleBinding(o)
	case *rbac.ClusterRole:
		errs = rbacvalidation.ValidateClusterRole(o, rbacvalidation.ClusterRoleValidationOptions{})
	case *rbac.ClusterRoleBinding:
		errs = rbacvalidation.ValidateClusterRoleBinding(o)
	}
	for _, e := range errs {
		out = append(out, problem(e.Field, e.ErrorBody()))
	}
	return out
}

func problem(at, message string) v1alpha1.ValidationProblem {
	return v1alpha1.ValidationProblem{Severity: v1alpha1.SeverityError, Field: at, Message: message}
}

// decodeStrictly decodes an object into a Go type. It reports each field that the type lacks.
func decodeStrictly(u *unstructured.Unstructured, into any) []v1alpha1.ValidationProblem {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into); err != nil {
		return []v1alpha1.ValidationProblem{problem("", err.Error())}
	}
	var out []v1alpha1.ValidationProblem
	for _, unknown := range fieldnames.Check(u.Object, reflect.TypeOf(into)) {
		out = append(out, problem(unknown.Path, unknown.Error()))
	}
	return out
}

// argumentProblems validates a provider's arguments against its schema, which is nil if the provider is not installed.
// It does not validate values from Secrets. unknown has the arguments that the provider does not have.
func argumentProblems(ctx context.Context, block *schema.Block,
	pc *v1alpha1.ProviderConfig) (unknown, others field.ErrorList) {
	args, err := configArguments(pc.Spec.Config)
	if block == nil || err != nil {
		return nil, nil
	}
	unknown = secretArguments(pc, block)
	config, diags := lang.ConfigOptions{Settled: true, Ephemeral: true, Namespace: pc.Namespace,
		Budget: lang.BudgetOf(ctx)}.Parse(args, block)
	for _, d := range diags {
		at := strings.Replace(d.Attribute, "spec", "spec.config", 1)
		fromSecret := slices.ContainsFunc(pc.Spec.SecretRefs,
			func(s v1alpha1.SecretArgument) bool { return at == "spec.config."+s.Argument })
		kind := config.MismatchOf(d).Kind
		if d.Severity != v1alpha1.SeverityError || kind == lang.MissingArgument && fromSecret {
			continue
		}
		problem := &field.Error{Type: field.ErrorTypeInvalid, Field: at, BadValue: field.OmitValueType{},
			Detail: strings.TrimSpace(fmt.Sprintf("%s. %s", d.Summary, d.Detail))}
		if kind == lang.UnknownField || kind == lang.ReadOnlyArgument {
			unknown = append(unknown, problem)
		} else {
			others = append(others, problem)
		}
	}
	return unknown, others
}

// secretArguments reports arguments from Secrets that the provider does not have.
func secretArguments(pc *v1alpha1.ProviderConfig, block *schema.Block) field.ErrorList {
	var errs field.ErrorList
	for i, ref := range pc.Spec.SecretRefs {
		in := block
		steps := strings.Split(ref.Argument, ".")
		for n, step := range steps {
			if a := in.Attribute(step); a != nil && a.Configurable() {
				break // the rest of the path is within a value
			}
			nested := in.NestedBlock(step)
			if nested != nil && n < len(steps)-1 {
				in = nested.Block
				continue
			}
			detail := fmt.Sprintf("the provider has no argument %q", ref.Argument)
			if near := suggest.Nearest(step, argumentsOf(in)); near != "" && nested == nil {
				detail += fmt.Sprintf("; did you mean %q?", strings.Join(append(slices.Clone(steps[:n]), near), "."))
			} else if nested != nil {
				detail = fmt.Sprintf("%q is a block: name an argument of it", ref.Argument)
			}
			errs = append(errs, field.Invalid(field.NewPath("spec", "secretRefs").Index(i).Child("argument"),
				field.OmitValueType{}, detail))
			break
		}
	}
	return errs
}

// argumentsOf returns the names of the arguments and blocks of a block.
func argumentsOf(b *schema.Block) []string {
	var names []string
	for _, a := range b.Attributes {
		if a.Configurable() {
			names = append(names, a.Name)
		}
	}
	for _, nested := range b.Blocks {
		names = append(names, nested.TypeName)
	}
	return names
}
