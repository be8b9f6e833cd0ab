package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/schema"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/server/kinds"
	"github.com/hykube/hykube/server/rights"
)

const (
	// defaultQuery and maxQuery are the default and the maximum number of resources in a query's result.
	defaultQuery = 100
	maxQuery     = 10_000
	// answerTime is the part of a request's time that is reserved for the response.
	answerTime = 500 * time.Millisecond
)

// QueryFunc lists existing resources with a provider and sets the query's status. The spec is validated and has the
// provider and the ProviderConfig to use; an empty ProviderConfig means none.
type QueryFunc func(ctx context.Context, who v1alpha1.Identity, q *v1alpha1.Query) error

// TypesFunc returns the kinds of a managed resource type: several if several providers have it.
type TypesFunc func(terraformType string) []kinds.Kind

// queries serves Queries.
type queries struct {
	configs *genericregistry.Store
	access  rights.Access
	types   TypesFunc
	backend *Backend
}

// newQueries returns the storage for Queries.
func newQueries(c Config, configs *genericregistry.Store) rest.Storage {
	r := &queries{configs: configs, access: rights.Access{Authorizer: c.Authorizer}, types: c.Types, backend: c.Backend}
	return answeredREST[*v1alpha1.Query]{queryTable{}, "query", func() *v1alpha1.Query { return new(v1alpha1.Query) },
		r.answer}
}

func (r *queries) answer(ctx context.Context, q *v1alpha1.Query, validate rest.ValidateObjectFunc,
	opts *metav1.CreateOptions) error {
	q.Status = v1alpha1.QueryStatus{}
	if errs := r.complete(ctx, q); len(errs) > 0 {
		return apierrors.NewInvalid(v1alpha1.Kind("Query"), q.Name, errs)
	}
	if err := validate(ctx, q.DeepCopy()); err != nil {
		return err
	}
	who, err := requireUser(ctx, "answer query")
	if err != nil {
		return err
	}
	if err := r.configure(ctx, who, q); err != nil || len(opts.DryRun) > 0 {
		return err
	}
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-answerTime))
		defer cancel()
	}
	if err := r.backend.Query(ctx, who, q); err != nil {
		return r.failure(ctx, q, err)
	}
	return nil
}

// failure converts an error of the query to an API error. An error of the provider is not an internal error of the
// server.
func (r *queries) failure(ctx context.Context, q *v1alpha1.Query, err error) error {
	if _, ok := errors.AsType[*apierrors.StatusError](err); ok {
		return err
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return apierrors.NewTimeoutError(
			fmt.Sprintf("the provider did not list %s in time; restrict the query with spec.config, or with a smaller spec.limit", q.Spec.Type), 0)
	}
	verb := "query"
	if q.Spec.Import != nil {
		verb = "import"
	}
	return apierrors.NewBadRequest(fmt.Sprintf("%s %s: %v", verb, q.Spec.Type, err))
}

// complete validates a query and sets its defaults.
func (r *queries) complete(ctx context.Context, q *v1alpha1.Query) field.ErrorList {
	spec := field.NewPath("spec")
	if q.Spec.Type == "" {
		return field.ErrorList{field.Required(spec.Child("type"), `Terraform resource type, such as "sim_instance"`)}
	}
	q.Spec.Type = v1alpha1.TypeOf(q.Spec.Type) // users may also write the kind
	found, errs := r.typeOf(q)
	if len(errs) > 0 {
		return errs
	}
	q.Spec.Provider = found.Provider
	if q.Spec.ProviderConfig != "" {
		for _, msg := range apivalidation.NameIsDNSSubdomain(q.Spec.ProviderConfig, false) {
			errs = append(errs, field.Invalid(spec.Child("providerConfig"), shorten(q.Spec.ProviderConfig), msg))
		}
	}
	if q.Spec.Import != nil {
		return append(errs, validateImport(q, found)...)
	}
	switch {
	case q.Spec.Limit == 0:
		q.Spec.Limit = defaultQuery
	case q.Spec.Limit < 0 || q.Spec.Limit > maxQuery:
		errs = append(errs, field.Invalid(spec.Child("limit"), q.Spec.Limit,
			fmt.Sprintf("must be between 1 and %d", maxQuery)))
	}
	if found.List == nil {
		return append(errs, field.Invalid(spec.Child("type"), q.Spec.Type,
			fmt.Sprintf("the provider %q cannot list this type; name a single resource with spec.import",
				found.Provider)))
	}
	return append(errs, validateArguments(ctx, q.Spec.Config, found.List.Block, spec.Child("config"))...)
}

// typeOf returns the resource type of a query.
func (r *queries) typeOf(q *v1alpha1.Query) (kinds.Kind, field.ErrorList) {
	spec := field.NewPath("spec")
	types := r.types(q.Spec.Type)
	var names []string
	for _, t := range types {
		if t.Provider == q.Spec.Provider {
			return t, nil
		}
		names = append(names, t.Provider)
	}
	switch {
	case len(types) == 0:
		return kinds.Kind{}, field.ErrorList{field.Invalid(spec.Child("type"), shorten(q.Spec.Type),
			"no installed provider has this resource type; `kubectl api-resources` lists the kinds of all providers")}
	case q.Spec.Provider != "":
		return kinds.Kind{}, field.ErrorList{field.Invalid(spec.Child("provider"), shorten(q.Spec.Provider),
			fmt.Sprintf("does not have the resource type %s; %s does", q.Spec.Type, strings.Join(names, ", ")))}
	case len(types) > 1:
		return kinds.Kind{}, field.ErrorList{field.Required(spec.Child("provider"),
			fmt.Sprintf("more than one provider has the resource type %s: %s", q.Spec.Type, strings.Join(names, ", ")))}
	}
	return types[0], nil
}

// validateImport validates the ID or identity of a query for a single resource.
func validateImport(q *v1alpha1.Query, found kinds.Kind) field.ErrorList {
	spec := field.NewPath("spec")
	at := spec.Child("import")
	var errs field.ErrorList
	if len(q.Spec.Objects) > 0 {
		errs = append(errs, field.Invalid(spec.Child("objects"), field.OmitValueType{},
			"cannot be combined with spec.import, which finds one resource"))
	}
	if q.Spec.Config != nil {
		errs = append(errs, field.Invalid(spec.Child("config"), field.OmitValueType{},
			"cannot be combined with spec.import, because these are arguments of a list"))
	}
	if q.Spec.Limit != 0 {
		errs = append(errs, field.Invalid(spec.Child("limit"), q.Spec.Limit,
			"cannot be combined with spec.import, which finds one resource"))
	}
	by := q.Spec.Import
	identified := by.Identity != nil && len(by.Identity.Raw) > 0
	switch {
	case by.ID == "" && !identified:
		return append(errs, field.Required(at, "id or identity of the resource"))
	case by.ID != "" && identified:
		return append(errs, field.Invalid(at, field.OmitValueType{},
			"id and identity exclude each other; remove one of the two"))
	case by.ID != "":
		return errs
	}
	var values map[string]any
	if err := json.Unmarshal(by.Identity.Raw, &values); err != nil || values == nil {
		return append(errs, field.Invalid(at.Child("identity"), field.OmitValueType{},
			"must be a map of the identity's attributes"))
	}
	return append(errs, found.ValidateIdentity(at.Child("identity"), values)...)
}

// validateArguments validates arguments that must not contain references.
func validateArguments(ctx context.Context, raw *runtime.RawExtension, block *schema.Block,
	path *field.Path) field.ErrorList {
	args, err := configArguments(raw)
	if err != nil {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, err.Error())}
	}
	config, diags := lang.ConfigOptions{Settled: true, Budget: lang.BudgetOf(ctx)}.Parse(args, block)
	var errs field.ErrorList
	for _, d := range diags {
		if d.Severity == v1alpha1.SeverityError {
			errs = append(errs, &field.Error{
				Type: field.ErrorTypeInvalid, Field: strings.Replace(d.Attribute, "spec", path.String(), 1),
				BadValue: field.OmitValueType{},
				Detail:   strings.TrimSpace(d.Summary + ". " + d.Detail),
			})
		}
	}
	for _, ref := range config.References() {
		errs = append(errs, &field.Error{
			Type: field.ErrorTypeInvalid, Field: strings.Replace(ref.Field, "spec", path.String(), 1),
			BadValue: field.OmitValueType{},
			Detail: fmt.Sprintf("refers to %s, but a query cannot contain references; write the value itself",
				ref.Address),
		})
	}
	return errs
}

// configure sets the ProviderConfig of a query, chosen as for a resource of the type. It checks that the author may use
// it.
func (r *queries) configure(ctx context.Context, who v1alpha1.Identity, q *v1alpha1.Query) error {
	named := q.Spec.ProviderConfig
	candidates := []string{named}
	if named == "" {
		candidates = slices.Compact([]string{v1alpha1.DefaultProviderConfig, q.Spec.Provider})
	}
	path := field.NewPath("spec", "providerConfig")
	refuse := func(format string, args ...any) error {
		return apierrors.NewInvalid(v1alpha1.Kind("Query"), q.Name,
			field.ErrorList{field.Invalid(path, named, fmt.Sprintf(format, args...))})
	}
	for _, name := range candidates {
		obj, err := r.configs.Get(ctx, name, &metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err) && named != "":
			return refuse("there is no ProviderConfig of this name in the namespace %q", q.Namespace)
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return err
		}
		if of := obj.(*v1alpha1.ProviderConfig).Spec.Provider; of == q.Spec.Provider {
			q.Spec.ProviderConfig = name
			return r.mayUse(ctx, who, q.Namespace, name)
		} else if named != "" {
			return refuse("it configures the provider %q, but the resource type belongs to %q", of, q.Spec.Provider)
		}
	}
	return nil
}

// mayUse returns a Forbidden error if a user may not use a ProviderConfig.
func (r *queries) mayUse(ctx context.Context, who v1alpha1.Identity, namespace, name string) error {
	right := store.UseOf(namespace, name)
	may, err := r.access.May(ctx, who, right)
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("authorize use of provider config %q: %w", name, err))
	}
	if may {
		return nil
	}
	return apierrors.NewForbidden(v1alpha1.Resource("providerconfigs"), name,
		fmt.Errorf("user %q has no verb %q on it, and a query uses that configuration; ask for the verb, or name another ProviderConfig in spec.providerConfig", who.Username, right.Verb))
}
