package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/storage/names"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/schema"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/internal/suggest"
)

const (
	maxConcurrency = 1024
	maxRate        = 100_000
	maxSecretRefs  = 100
)

func newProviderConfigs(c Config, providers *genericregistry.Store) (*resourceREST, *statusREST, error) {
	strategy := kindStrategy[*v1alpha1.ProviderConfig, v1alpha1.ProviderConfigStatus]{
		ObjectTyper:   c.Codecs.Scheme,
		NameGenerator: names.SimpleNameGenerator,
		namespaced:    true,
		begin: func(ctx context.Context, pc *v1alpha1.ProviderConfig) {
			pc.Status = v1alpha1.ProviderConfigStatus{Contributors: replaceWriter(ctx, nil,
				writtenArguments(pc, nil)...),
				Conditions: initialConditions(v1alpha1.ReasonProviderNotReady,
					"The provider has not checked the configuration yet.")}
		},
		prepareUpdate: func(ctx context.Context, pc, old *v1alpha1.ProviderConfig) {
			pc.Status.Contributors = replaceWriter(ctx, pc.Status.Contributors, writtenArguments(pc, old)...)
		},
		spec:           func(pc *v1alpha1.ProviderConfig) any { return pc.Spec },
		status:         func(pc *v1alpha1.ProviderConfig) *v1alpha1.ProviderConfigStatus { return &pc.Status },
		conditions:     func(s *v1alpha1.ProviderConfigStatus) *[]metav1.Condition { return &s.Conditions },
		validate:       validateProviderConfig,
		validateUpdate: validateProviderConfigUpdate,
		mayWriteStatus: func(ctx context.Context, _, _ *v1alpha1.ProviderConfig) field.ErrorList {
			return statusByServer(ctx, "a ProviderConfig")
		},
		validateAgainst: func(ctx context.Context, pc, old *v1alpha1.ProviderConfig) field.ErrorList {
			if old != nil && sameArguments(pc.Spec, old.Spec) {
				return nil // another version of the provider may have accepted them
			}
			block, _ := schemaOf(ctx, c, providers, pc)
			unknown, _ := argumentProblems(ctx, block, pc)
			return unknown
		},
		warn: func(ctx context.Context, pc *v1alpha1.ProviderConfig) []string {
			block, exists := schemaOf(ctx, c, providers, pc)
			if !exists {
				return []string{noProvider(pc.Spec.Provider, providerNames(ctx, providers))}
			}
			return warnProviderConfig(ctx, pc, block)
		},
	}
	stored, statusREST, err := newStore(c, "providerconfig", new(v1alpha1.ProviderConfig),
		new(v1alpha1.ProviderConfigList), strategy, providerConfigTable)
	if err != nil {
		return nil, nil, err
	}
	mayDelete := func(ctx context.Context, obj runtime.Object) error {
		return c.mayUncover(ctx, stored.List, obj.(*v1alpha1.ProviderConfig))
	}
	return &resourceREST{Store: stored, short: "pc", held: NewHeld(stored, newHeldConfig(c, strategy)),
		mayWrite: authorizeReferences(c.AuthorizeReferences), mayDelete: mayDelete}, statusREST, nil
}

// mayUncover checks the right to delete the ProviderConfig "default", beside one with the name of its provider. Later
// creates then take the arguments of the other one, and nothing tells who caused that.
func (c Config) mayUncover(ctx context.Context, list listFunc, cfg *v1alpha1.ProviderConfig) error {
	if byServer(ctx) || cfg.Name != v1alpha1.DefaultProviderConfig {
		return nil
	}
	all, err := list(request.WithNamespace(ctx, cfg.Namespace), &metainternalversion.ListOptions{})
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("list the ProviderConfigs beside %q: %w", cfg.Name, err))
	}
	covers := slices.ContainsFunc(all.(*v1alpha1.ProviderConfigList).Items, func(o v1alpha1.ProviderConfig) bool {
		return o.Name == cfg.Spec.Provider && o.Spec.Provider == cfg.Spec.Provider && o.Name != cfg.Name
	})
	if !covers {
		return nil
	}
	approve := []store.Right{{Verb: store.VerbApprove, Namespace: cfg.Namespace, Group: groupName, Resource: "plans"}}
	return requireRights(ctx, c.Authorizer, "providerconfigs", cfg.Name, approve, fmt.Sprintf(
		"resources of the provider %[1]q that name no ProviderConfig would take the one with the name %[1]q",
		cfg.Spec.Provider))
}

// listFunc lists the objects of a namespace.
type listFunc func(context.Context, *metainternalversion.ListOptions) (runtime.Object, error)

// schemaOf returns the schema of a provider's configuration, and whether the Provider exists. The schema is nil if the
// provider is not ready, or another version of it is being installed.
func schemaOf(ctx context.Context, c Config, providers *genericregistry.Store,
	pc *v1alpha1.ProviderConfig) (block *schema.Block, exists bool) {
	obj, err := providers.Get(request.WithNamespace(ctx, metav1.NamespaceNone), pc.Spec.Provider, &metav1.GetOptions{})
	if err != nil {
		return nil, !apierrors.IsNotFound(err)
	}
	p := obj.(*v1alpha1.Provider)
	if p.Status.ObservedGeneration != p.Generation || !meta.IsStatusConditionTrue(p.Status.Conditions,
		v1alpha1.ConditionReady) {
		return nil, true
	}
	return c.ConfigBlock(pc.Spec.Provider), true
}

// noProvider warns of a Provider that does not exist. It is no error, because the Provider may come later.
func noProvider(name string, known []string) string {
	text := fmt.Sprintf("spec.provider: there is no Provider %q yet", name)
	if near := suggest.Nearest(name, known); near != "" {
		text += fmt.Sprintf("; did you mean %q?", near)
	}
	return text
}

// providerNames returns the names of all Providers, which every user sees as API groups.
func providerNames(ctx context.Context, providers *genericregistry.Store) []string {
	list, err := providers.List(request.WithNamespace(ctx, metav1.NamespaceNone), nil)
	if err != nil {
		return nil // the names only improve a warning
	}
	var out []string
	for _, p := range list.(*v1alpha1.ProviderList).Items {
		out = append(out, p.Name)
	}
	return out
}

// warnProviderConfig warns of arguments that cannot be checked yet, and of values that the provider does not accept.
// None is an error, because another version of the provider may come later. block is nil if the schema of the provider
// is not known.
func warnProviderConfig(ctx context.Context, pc *v1alpha1.ProviderConfig, block *schema.Block) []string {
	if args, err := configArguments(pc.Spec.Config); err == nil && block == nil && len(args)+
		len(pc.Spec.SecretRefs) > 0 {
		return []string{fmt.Sprintf("spec.config: the Provider %q is not ready, so the server checks the arguments later", pc.Spec.Provider)}
	}
	var out []string
	_, others := argumentProblems(ctx, block, pc)
	for _, e := range others {
		out = append(out, e.Error())
	}
	return out
}

// authorizeReferences rejects a ProviderConfig that refers to objects that its author may not read. A user who plans
// with it may have that right, and would send the values to the hosts in the provider's configuration.
func authorizeReferences(authorize AuthorizeReferencesFunc) func(ctx context.Context, obj, old runtime.Object) error {
	return func(ctx context.Context, obj, old runtime.Object) error {
		who, ok := request.UserFrom(ctx)
		if !ok {
			return apierrors.NewInternalError(errors.New("authorize references: the request has no user"))
		}
		cfg := obj.(*v1alpha1.ProviderConfig)
		before, _ := old.(*v1alpha1.ProviderConfig)
		if who.GetName() == user.APIServerUser || before != nil && sameArguments(cfg.Spec, before.Spec) {
			return nil
		}
		problems, err := authorize(ctx, who, cfg)
		if err != nil {
			return apierrors.NewInternalError(err)
		}
		if len(problems) == 0 {
			return nil
		}
		return apierrors.NewForbidden(v1alpha1.Resource("providerconfigs"), cfg.Name,
			errors.New(strings.Join(problems, "; ")))
	}
}

// sameArguments reports whether two specs configure the provider equally, so that the destination of referenced values
// is unchanged.
func sameArguments(a, b v1alpha1.ProviderConfigSpec) bool {
	a.Limits, b.Limits = nil, nil
	return sameSpec(a, b)
}

// argumentPath matches the path of a provider's argument; dots separate the parts of a nested one.
var argumentPath = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*$`)

func validateProviderConfig(pc *v1alpha1.ProviderConfig) field.ErrorList {
	errs := validateObjectName(pc.Name)
	spec := field.NewPath("spec")
	if pc.Spec.Provider == "" {
		errs = append(errs, field.Required(spec.Child("provider"), "name of the Provider that this configures"))
	} else {
		errs = append(errs, validateProviderName(pc.Spec.Provider, spec.Child("provider"))...)
	}
	config, err := configArguments(pc.Spec.Config)
	if err != nil {
		errs = append(errs, field.Invalid(spec.Child("config"), field.OmitValueType{}, err.Error()))
	}
	for _, ref := range catalog.References(pc) {
		if ref.IsModuleOutput() {
			errs = append(errs, field.Invalid(field.NewPath(ref.Field), ref.Address.String(),
				"a ProviderConfig cannot refer to an output of a Module yet; refer to the resource, or to a ConfigMap"))
		}
	}
	if _, err := configArguments(pc.Spec.Meta); err != nil {
		errs = append(errs, field.Invalid(spec.Child("meta"), field.OmitValueType{}, err.Error()))
	}
	errs = append(errs, validateSecretRefs(pc.Spec.SecretRefs, config, spec.Child("secretRefs"))...)
	if l := pc.Spec.Limits; l != nil {
		errs = append(errs, validateRange(l.Concurrency, maxConcurrency, spec.Child("limits", "concurrency"))...)
		errs = append(errs, validateRange(l.RatePerSecond, maxRate, spec.Child("limits", "ratePerSecond"))...)
	}
	return errs
}

func validateProviderConfigUpdate(pc, old *v1alpha1.ProviderConfig) field.ErrorList {
	if pc.Spec.Provider == old.Spec.Provider {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec", "provider"), pc.Spec.Provider,
		fmt.Sprintf("field is immutable: it is %q; to use another provider, delete the ProviderConfig and create it anew", old.Spec.Provider))}
}

// configArguments decodes the arguments. It does not check their types, which depend on the provider.
func configArguments(raw *runtime.RawExtension) (map[string]any, error) {
	if raw == nil || len(raw.Raw) == 0 {
		return nil, nil
	}
	var config map[string]any
	if err := json.Unmarshal(raw.Raw, &config); err != nil {
		return nil, errors.New("must be a map of the provider's arguments")
	}
	return config, nil
}

func validateSecretRefs(refs []v1alpha1.SecretArgument, config map[string]any, path *field.Path) field.ErrorList {
	if len(refs) > maxSecretRefs {
		return field.ErrorList{field.TooMany(path, len(refs), maxSecretRefs)}
	}
	var errs field.ErrorList
	seen := make(map[string]bool, len(refs))
	for i, ref := range refs {
		at := path.Index(i)
		switch {
		case ref.Argument == "":
			errs = append(errs, field.Required(at.Child("argument"), "argument of the provider that takes the value"))
		case !argumentPath.MatchString(ref.Argument):
			errs = append(errs, field.Invalid(at.Child("argument"), shorten(ref.Argument),
				`must be the name of an argument, or the path of a nested one with dots, such as "auth.password"`))
		case seen[ref.Argument]:
			errs = append(errs, field.Duplicate(at.Child("argument"), ref.Argument))
		case hasArgument(config, ref.Argument):
			errs = append(errs, field.Invalid(at.Child("argument"), ref.Argument,
				"is set in spec.config, too; remove it from one of the two"))
		}
		if ref.Rotates && catalog.ChoosesAccount(ref.Argument) {
			errs = append(errs, field.Invalid(at.Child("rotates"), true,
				fmt.Sprintf("is for a credential, and %q chooses where calls go: "+
					"whoever may write that key could lead an approved change to another account",
					shorten(ref.Argument))))
		}
		seen[ref.Argument] = true
		if ref.Name == "" {
			errs = append(errs, field.Required(at.Child("name"), "name of a Secret in the same namespace"))
		} else {
			for _, msg := range validation.IsDNS1123Subdomain(ref.Name) {
				errs = append(errs, field.Invalid(at.Child("name"), shorten(ref.Name), msg))
			}
		}
		if ref.Key == "" {
			errs = append(errs, field.Required(at.Child("key"), "key in the Secret's data"))
		} else {
			for _, msg := range validation.IsConfigMapKey(ref.Key) {
				errs = append(errs, field.Invalid(at.Child("key"), shorten(ref.Key), msg))
			}
		}
	}
	return errs
}

// hasArgument reports whether the arguments contain the one with a dotted path.
func hasArgument(config map[string]any, argument string) bool {
	first, rest, nested := strings.Cut(argument, ".")
	value, ok := config[first]
	if !ok || !nested {
		return ok
	}
	inner, ok := value.(map[string]any)
	return ok && hasArgument(inner, rest)
}

func validateRange(value, most int32, path *field.Path) field.ErrorList {
	if value < 0 || value > most {
		return field.ErrorList{field.Invalid(path, value, fmt.Sprintf("must be between 0 and %d", most))}
	}
	return nil
}

func validateObjectName(name string) field.ErrorList {
	var errs field.ErrorList
	for _, msg := range apivalidation.NameIsDNSSubdomain(name, false) {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), shorten(name), msg))
	}
	return errs
}
