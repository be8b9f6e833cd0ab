package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/audit"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/fair"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/policy"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/server/engine"
	"github.com/hykube/hykube/server/kinds"
	"github.com/hykube/hykube/server/registry"
	"github.com/hykube/hykube/server/rights"
	"github.com/hykube/hykube/server/storage"
)

// Components holds the server's components for Config.Wire.
type Components struct {
	// DataDir is the server's data directory.
	DataDir string
	// KeyFiles are the files outside of DataDir with the server's keys. No provider may read them.
	KeyFiles []string
	Settings
	// Loopback is a client configuration for this server as system:apiserver. The server serves when Wiring.Run is
	// called, not before.
	Loopback *rest.Config
	// KV is the store of the ledger.
	KV *storage.KV
	// Objects reads stored objects.
	Objects *storage.Objects
	// Plans reads Plans and changes their status.
	Plans *registry.StoredPlans
	// Kinds serves the providers' kinds.
	Kinds *kinds.Kinds
	// Authorizer decides what users may do, as it does for their requests.
	Authorizer authorizer.Authorizer
	// Engine is the Temporal engine. Its Client is set when Wiring.Run is called.
	Engine *engine.Engine
	// WorkflowRoom returns an error of gRPC if a namespace may not start a number of workflows, or may have no further
	// schedule.
	WorkflowRoom func(ctx context.Context, namespace string, starts int, schedule bool) error
	// Processors are the slots of work that needs a processor, by namespace.
	Processors *fair.Slots
	// Record records provider calls in the audit log; nil if it is off.
	Record audit.RecordFunc
	// Metrics registers metrics for /metrics.
	Metrics prometheus.Registerer
	Logger  *slog.Logger
}

// Wiring holds the functions that Config.Wire returns. Every field is required.
type Wiring struct {
	// InUse returns the number of existing resources that need a Namespace, Provider, ProviderConfig, Secret or
	// ConfigMap, and the name of one.
	InUse registry.InUseFunc
	// Named reports whether any object refers to one of these objects.
	Named registry.NamedFunc
	// Changes returns a page of the changes of a plan.
	Changes registry.ChangesFunc
	// SaveObjects stores a chunk of the objects of a speculative plan. After the last chunk, it returns the number of
	// uploaded objects.
	SaveObjects func(ctx context.Context, plan types.UID, chunk int32, docs []ledger.Document, last bool) (uploaded int, err error)
	// Verify checks which changes an approval of a plan would permit now.
	Verify registry.VerifyFunc
	// Judge evaluates the policies for a plan. Automatic reports whether a policy for the namespace has a rule with the
	// effect AllowAutomatic.
	Judge     registry.JudgeFunc
	Automatic func(ctx context.Context, namespace string) (bool, error)
	// CurrentStacks waits until the Stacks of a namespace show all earlier writes; see registry.Config.
	CurrentStacks func(ctx context.Context, namespace string)
	// SelectsAny reports whether any resource of a namespace has some labels; see registry.Config.
	SelectsAny func(ctx context.Context, namespace string, selects func(labels.Set) bool) (bool, error)
	// CancelRun cancels the running workflow of a stack; see registry.Config.
	CancelRun registry.CancelRunFunc
	// State returns the raw provider state of a provider's object.
	State func(context.Context, metav1.Object, kinds.Kind) ([]byte, error)
	// Taint marks the infrastructure of a provider's object for replacement by the next plan, or removes the mark.
	// applied is true if the current generation is applied.
	Taint func(ctx context.Context, obj metav1.Object, kind kinds.Kind, tainted bool) (applied bool, err error)
	// Resolve drops the intent of a create whose outcome is unknown; see kinds.Config.
	Resolve func(ctx context.Context, obj metav1.Object, kind kinds.Kind) error
	// Undelete reverts the deletion of a provider's object; see kinds.Config.
	Undelete func(ctx context.Context, obj metav1.Object, kind kinds.Kind, clear func(kinds.Undeleted) error, mark func() error) error
	// Deletion returns the consequences of deleting a provider's object.
	Deletion func(ctx context.Context, obj metav1.Object, kind kinds.Kind) (kinds.Deletion, error)
	// Instance returns an instance of a ResourceSet, or nil, and InstanceStatus changes its status; see kinds.Config.
	Instance       func(ctx context.Context, ref v1alpha1.ObjectReference) (*unstructured.Unstructured, error)
	InstanceStatus func(ctx context.Context, ref v1alpha1.ObjectReference, change func(*unstructured.Unstructured) map[string]any) error
	// SetAt returns the name of the ResourceSet whose instances have the address of a reference, or ""; see kinds.Config.
	SetAt func(ref v1alpha1.ObjectReference) string
	// Instances returns a page of the instances of a ResourceSet.
	Instances registry.InstancesFunc
	// FormerSet finds the ResourceSet that a removed instance belonged to; see registry.FormerSetFunc.
	FormerSet registry.FormerSetFunc
	// Query makes a provider list existing resources.
	Query registry.QueryFunc
	// Evaluate evaluates an expression over the recorded values.
	Evaluate registry.EvaluateFunc
	// Run runs the controllers and workers. The server calls it after both the server and the engine have started. It
	// must return within a few seconds after its context ends; until then, the server and the engine keep running.
	Run func(context.Context) error
	// Ready returns the reason why the server is not ready, such as kinds of installed providers that are not served
	// yet after a restart.
	Ready func() error
	// Close is called last in every case. It must stop all provider processes.
	Close func(context.Context) error
}

// The functions below call the wiring at the time of the request, because Config.Wire runs after the handlers are
// created.

func (s *Server) inUse(ctx context.Context, obj metav1.Object) (int, string, error) {
	return s.wiring.InUse(ctx, obj)
}

func (s *Server) named(ctx context.Context, obj metav1.Object) (bool, error) {
	return s.wiring.Named(ctx, obj)
}

func (s *Server) currentStacks(ctx context.Context, namespace string) {
	s.wiring.CurrentStacks(ctx, namespace)
}

func (s *Server) selectsAny(ctx context.Context, namespace string, selects func(labels.Set) bool) (bool, error) {
	return s.wiring.SelectsAny(ctx, namespace, selects)
}

func (s *Server) cancelRun(ctx context.Context, stack *v1alpha1.Stack, reason string) (bool, error) {
	return s.wiring.CancelRun(ctx, stack, reason)
}

// authorizeReferences checks the references of a ProviderConfig to other namespaces, ConfigMaps and Secrets. A
// secretRef sends a Secret to the provider, as an expression does.
func (s *Server) authorizeReferences(ctx context.Context, who user.Info, cfg *v1alpha1.ProviderConfig) ([]string, error) {
	refs := catalog.References(cfg)
	for i, ref := range cfg.Spec.SecretRefs {
		refs = append(refs, lang.NewReference(lang.Address{Type: lang.TypeSecret, Name: ref.Name}, fmt.Sprintf("spec.secretRefs[%d]", i)))
	}
	return s.kinds.MayRefer(ctx, who, cfg.Namespace, refs, true)
}

func (s *Server) changes(ctx context.Context, plan *v1alpha1.Plan, limit int, cont string) (*v1alpha1.PlanChangeList, error) {
	list, err := s.wiring.Changes(ctx, plan, limit, cont)
	if err != nil {
		return nil, err
	}
	who, ok := request.UserFrom(ctx)
	if !ok {
		return nil, errors.New("list changes of plan: the request has no user")
	}
	return list, withholdValues(ctx, s.asker(who), s.kinds.Kind, list)
}

// asker checks the rights of a user for one request.
func (s *Server) asker(who user.Info) *store.Asker {
	return rights.Access{Authorizer: s.config.generic.Authorization.Authorizer}.Asker(who)
}

func (s *Server) verify(ctx context.Context, plan *v1alpha1.Plan) (changes.Verification, error) {
	if s.deletions.isUndeleting(plan.Namespace) {
		return changes.Verification{}, apierrors.NewServiceUnavailable(messageUndeleting(plan.Namespace))
	}
	return s.wiring.Verify(ctx, plan)
}

func (s *Server) judge(ctx context.Context, plan *v1alpha1.Plan, approvals []v1alpha1.PlanApproval) (*policy.Verdict, error) {
	return s.wiring.Judge(ctx, plan, approvals)
}

func (s *Server) automatic(ctx context.Context, namespace string) (bool, error) {
	return s.wiring.Automatic(ctx, namespace)
}

func (s *Server) state(ctx context.Context, obj metav1.Object, kind kinds.Kind) ([]byte, error) {
	return s.wiring.State(ctx, obj, kind)
}

func (s *Server) taint(ctx context.Context, obj metav1.Object, kind kinds.Kind, tainted bool) (applied bool, err error) {
	return s.wiring.Taint(ctx, obj, kind, tainted)
}

func (s *Server) resolve(ctx context.Context, obj metav1.Object, kind kinds.Kind) error {
	return s.wiring.Resolve(ctx, obj, kind)
}

func (s *Server) deletion(ctx context.Context, obj metav1.Object, kind kinds.Kind) (kinds.Deletion, error) {
	return s.wiring.Deletion(ctx, obj, kind)
}

func (s *Server) undelete(ctx context.Context, obj metav1.Object, kind kinds.Kind, clear func(kinds.Undeleted) error, mark func() error) error {
	return s.wiring.Undelete(ctx, obj, kind, clear, mark)
}

func (s *Server) instance(ctx context.Context, ref v1alpha1.ObjectReference) (*unstructured.Unstructured, error) {
	return s.wiring.Instance(ctx, ref)
}

func (s *Server) setAt(ref v1alpha1.ObjectReference) string {
	if s.wiring.SetAt == nil { // in tests
		return ""
	}
	return s.wiring.SetAt(ref)
}

func (s *Server) instances(ctx context.Context, set *v1alpha1.ResourceSet, limit int, cont string) (*v1alpha1.ResourceSetInstanceList, error) {
	return s.wiring.Instances(ctx, set, limit, cont)
}

func (s *Server) formerSet(ctx context.Context, ref v1alpha1.ObjectReference, except types.UID) (string, error) {
	if s.wiring.FormerSet == nil { // in tests
		return "", nil
	}
	return s.wiring.FormerSet(ctx, ref, except)
}

func (s *Server) instanceStatus(ctx context.Context, ref v1alpha1.ObjectReference, change func(*unstructured.Unstructured) map[string]any) error {
	return s.wiring.InstanceStatus(ctx, ref, change)
}

func (s *Server) query(ctx context.Context, who v1alpha1.Identity, q *v1alpha1.Query) error {
	return s.wiring.Query(ctx, who, q)
}

func (s *Server) evaluate(ctx context.Context, who v1alpha1.Identity, e *v1alpha1.Evaluation) error {
	return s.wiring.Evaluate(ctx, who, e)
}

// providerConfigs returns a function for kinds.Config.ProviderConfigs: it returns the provider of the named
// ProviderConfig, or those of all ProviderConfigs in the namespace if that does not exist.
func providerConfigs(stored *storage.Objects) func(ctx context.Context, namespace, name string) (map[string]string, error) {
	return func(ctx context.Context, namespace, name string) (map[string]string, error) {
		providers := map[string]string{}
		add := func(u *unstructured.Unstructured) {
			providers[u.GetName()], _, _ = unstructured.NestedString(u.Object, "spec", "provider")
		}
		cfg, err := stored.Get(ctx, v1alpha1.Resource("providerconfigs"), namespace, name)
		if err != nil {
			return nil, err
		}
		if cfg != nil {
			add(cfg)
			return providers, nil
		}
		for u, err := range stored.List(ctx, v1alpha1.GroupName, namespace) {
			if err != nil {
				return nil, err
			}
			if u.GetKind() == "ProviderConfig" {
				add(u)
			}
		}
		return providers, nil
	}
}

// providerOf returns a function that returns the provider of a ProviderConfig; "" if the ProviderConfig does not exist.
func providerOf(stored *storage.Objects) func(ctx context.Context, namespace, name string) (string, error) {
	return func(ctx context.Context, namespace, name string) (string, error) {
		cfg, err := stored.Get(ctx, v1alpha1.Resource("providerconfigs"), namespace, name)
		if err != nil || cfg == nil {
			return "", err
		}
		provider, _, err := unstructured.NestedString(cfg.Object, "spec", "provider")
		return provider, err
	}
}
