package registry

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/policy"
	"github.com/hykube/hykube/internal/provider/trust"
	"github.com/hykube/hykube/internal/schema"
	"github.com/hykube/hykube/server/kinds"
	"github.com/hykube/hykube/server/storage"
)

// ChangesFunc returns a page of at most limit changes of a plan. cont is the token of the previous page.
type ChangesFunc func(ctx context.Context, plan *v1alpha1.Plan, limit int,
	cont string) (*v1alpha1.PlanChangeList, error)

// VerifyFunc checks which changes an approval of a plan would permit now.
type VerifyFunc func(ctx context.Context, plan *v1alpha1.Plan) (changes.Verification, error)

// JudgeFunc evaluates the policies for a plan with the approvals that it would have.
type JudgeFunc func(ctx context.Context, plan *v1alpha1.Plan, in changes.Judged) (*policy.Verdict, error)

// AuthorizeReferencesFunc returns the references of a ProviderConfig that its author may not read.
type AuthorizeReferencesFunc func(ctx context.Context, who user.Info,
	cfg *v1alpha1.ProviderConfig) (problems []string, err error)

// Config configures the registries. Every field is required.
type Config struct {
	Codecs      Codecs
	RESTOptions generic.RESTOptionsGetter
	// UncachedOptions are storage options without a watch cache. They are for PlanRecords, of which there may be many,
	// for policies, which each plan lists, and for Providers, whose watches continue after a restart. A watch cache
	// would start empty and respond with 410 to a watch from an earlier revision. A current list from a watch cache
	// waits for up to 100 ms.
	UncachedOptions generic.RESTOptionsGetter
	// Authorizer checks the verbs "approve" and "use".
	Authorizer authorizer.Authorizer
	// Backend answers requests. The functions of the registries read its fields at each request, never before.
	Backend *Backend
	// Deleting is called before an object that may be in use is marked for deletion; see HeldConfig.
	Deleting func(resource, namespace, name string)
	// Changed is called after an object was changed or removed, because objects that are being deleted may no longer be
	// in use.
	Changed             func()
	AuthorizeReferences AuthorizeReferencesFunc
	Changes             ChangesFunc
	// Objects accepts the objects of speculative plans.
	Objects ObjectsFunc
	Verify  VerifyFunc
	// ExternalTemporal is true if the server uses an external Temporal cluster, in which stacks start no workflows.
	ExternalTemporal bool
	// MayRead reports whether the user of a request may get the objects of a plan.
	MayRead ReaderFunc
	// Collection has the objects of all providers' kinds, StoredObjects single ones, and Kinds the kinds.
	Collection    *storage.Collection
	StoredObjects *storage.Objects
	Kinds         *kinds.Kinds
	// Types returns the types for queries.
	Types TypesFunc
	// Check and ConfigBlock give validations access to the providers' schemas.
	Check       CheckFunc
	ConfigBlock func(provider string) *schema.Block
	// Protected are directories of the server to which no Provider may grant access.
	Protected []string
	// Trust is the server's trust policy for providers; nil allows all sources.
	Trust *trust.Policy
}

// newHeldConfig returns the HeldConfig for a kind with conditions.
func newHeldConfig[T deepCopier[T], S any](c Config, strategy kindStrategy[T, S]) HeldConfig {
	conditions := func(obj runtime.Object) *[]metav1.Condition { return strategy.conditions(strategy.status(obj.(T))) }
	return HeldConfig{
		As:      func(obj runtime.Object) metav1.Object { return obj.(metav1.Object) },
		Backend: c.Backend, Deleting: c.Deleting,
		Note: func(obj runtime.Object, message string) {
			generation := obj.(metav1.Object).GetGeneration()
			condition.Set(conditions(obj), generation, v1alpha1.ConditionInUse, true,
				v1alpha1.ReasonSomeResourcesRemain, message)
		},
		Clear: func(obj runtime.Object) { meta.RemoveStatusCondition(conditions(obj), v1alpha1.ConditionInUse) },
	}
}

// NewGroup returns the API group hykube.io. It also returns, by resource, the Held of each kind whose deleted objects
// are kept while they are in use.
func NewGroup(c Config) (*genericapiserver.APIGroupInfo, map[string]*Held, error) {
	uncached := c
	uncached.RESTOptions = c.UncachedOptions
	providers, providerStatus, err := newProviders(uncached)
	if err != nil {
		return nil, nil, fmt.Errorf("make registry of providers: %w", err)
	}
	configs, configStatus, err := newProviderConfigs(c, providers.Store)
	if err != nil {
		return nil, nil, fmt.Errorf("make registry of provider configs: %w", err)
	}
	plans, planStatus, err := newPlans(c)
	if err != nil {
		return nil, nil, fmt.Errorf("make registry of plans: %w", err)
	}
	records, err := newPlanRecords(c)
	if err != nil {
		return nil, nil, fmt.Errorf("make registry of plan records: %w", err)
	}
	policies, err := newPlanPolicies(uncached)
	if err != nil {
		return nil, nil, fmt.Errorf("make registry of plan policies: %w", err)
	}
	clusterPolicies, err := newClusterPlanPolicies(uncached)
	if err != nil {
		return nil, nil, fmt.Errorf("make registry of cluster plan policies: %w", err)
	}
	sets, setStatus, err := newResourceSets(uncached)
	if err != nil {
		return nil, nil, fmt.Errorf("make registry of resource sets: %w", err)
	}
	modules, moduleStatus, err := newModules(uncached)
	if err != nil {
		return nil, nil, fmt.Errorf("make registry of modules: %w", err)
	}
	stacks, stackStatus, err := newStacks(uncached, plans.Store)
	if err != nil {
		return nil, nil, fmt.Errorf("make registry of stacks: %w", err)
	}
	notifications, notificationStatus, err := newNotifications(uncached)
	if err != nil {
		return nil, nil, fmt.Errorf("make registry of notifications: %w", err)
	}
	info := genericapiserver.NewDefaultAPIGroupInfo(v1alpha1.GroupName, c.Codecs.Scheme, c.Codecs.Parameters,
		c.Codecs.Factory)
	info.NegotiatedSerializer = negotiated{c.Codecs.Factory, c.Codecs.Scheme}
	info.VersionedResourcesStorageMap[v1alpha1.SchemeGroupVersion.Version] = map[string]rest.Storage{
		"providers":                providers,
		"providers/status":         providerStatus,
		"providers/undelete":       NewUndelete(providers.held),
		"providerconfigs":          configs,
		"providerconfigs/status":   configStatus,
		"providerconfigs/undelete": NewUndelete(configs.held),
		"plans":                    plans,
		"plans/status":             planStatus,
		"plans/approval":           &decisionREST{subresource{plans.New}, plans.Store, c.MayRead, c.approve},
		"plans/cancel":             &decisionREST{subresource{plans.New}, plans.Store, c.MayRead, cancel},
		"plans/changes":            newChanges(plans.Store, c.Changes),
		"plans/objects":            newObjects(plans.Store, c.Objects),
		"planrecords":              records,
		"planpolicies":             policies,
		"clusterplanpolicies":      clusterPolicies,
		"resources":                newResources(c),
		"resourcesets":             sets,
		"resourcesets/status":      setStatus,
		"resourcesets/instances":   newInstances(c, sets.Store),
		"resourcesets/scale":       newScale(sets),
		"resourcesets/undelete":    newUndeleteSet(c, sets.Store),
		"modules":                  modules,
		"modules/status":           moduleStatus,
		"modules/instances":        newModuleInstances(c, modules.Store),
		"modules/undelete":         newUndeleteModule(c, modules.Store),
		"stacks":                   stacks,
		"stacks/status":            stackStatus,
		"stacks/drift":             &driftREST{subresource{stacks.New}, stacks.Store, c.MayRead},
		"stacks/cancel":            &cancelRunREST{subresource{stacks.New}, stacks.Store, c.MayRead, c.Backend},
		"stacks/takeover":          &takeOverREST{subresource{stacks.New}, stacks.Store, c},
		"notifications":            notifications,
		"notifications/status":     notificationStatus,
		"queries":                  newQueries(c, configs.Store),
		"validations":              newValidations(c),
		"evaluations":              newEvaluations(c.Backend),
		"statepushes":              newStatePushes(c.Backend),
		"statepulls":               newStatePulls(c.Backend),
	}
	return &info, map[string]*Held{"providers": providers.held, "providerconfigs": configs.held}, nil
}
