package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
	"github.com/hykube/hykube/internal/index"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/server/engine"
	"github.com/hykube/hykube/server/kinds"
	"github.com/hykube/hykube/server/registry"
	"github.com/hykube/hykube/server/rights"
	"github.com/hykube/hykube/server/starter"
	"github.com/hykube/hykube/server/storage"
)

// Components holds the server's components for Config.Wire.
type Components struct {
	// DataDir is the server's data directory.
	DataDir string
	// KeyFiles are the files outside of DataDir with the server's keys. No provider may read them.
	KeyFiles []string
	Settings
	// Worker is true for a worker, which runs no controllers.
	Worker bool
	// Loopback is a client configuration for this server as system:apiserver. The server serves when Wiring.Run is
	// called, not before.
	Loopback *rest.Config
	// KV is the store of the ledger.
	KV *storage.KV
	// Processes are this process and the others that write to the ledger.
	Processes ledger.Processes
	// Objects reads stored objects.
	Objects *storage.Objects
	// Snapshots stores the snapshot of the index.
	Snapshots *storage.Snapshots
	// Plans reads Plans and changes their status.
	Plans *registry.StoredPlans
	// Kinds serves the providers' kinds.
	Kinds *kinds.Kinds
	// Authorizer decides what users may do, as it does for their requests.
	Authorizer authorizer.Authorizer
	// Users gives users the groups that they have now.
	Users rights.Users
	// Engine is the Temporal engine. Its Client is set when Wiring.Run is called.
	Engine *engine.Engine
	// WorkflowRoom returns an error of gRPC if a namespace may not start a number of workflows, or may have no further
	// schedule.
	WorkflowRoom func(ctx context.Context, namespace string, starts int, schedule bool) error
	// Stamps signs for whom the workflows of stacks act.
	Stamps starter.Signer
	// Processors are the slots of work that needs a processor, by namespace.
	Processors *fair.Slots
	// Hold holds the plans that another server may apply, because the database is a copy or was restored.
	Hold changes.Hold
	// Record records provider calls in the audit log; nil if it is off.
	Record audit.RecordFunc
	// Metrics registers metrics for /metrics.
	Metrics prometheus.Registerer
	Logger  *slog.Logger
}

// Wiring holds the functions that Config.Wire returns. Every field is required. The handlers have pointers into the
// server's Wiring, and call its functions at the time of a request, because Config.Wire runs after their creation.
type Wiring struct {
	// Backend answers requests for the kinds of hykube.io. Infrastructure answers those for the providers' kinds.
	registry.Backend
	kinds.Infrastructure
	// Changes returns a page of the changes of a plan.
	Changes registry.ChangesFunc
	// SaveObjects stores a chunk of the objects of a speculative plan. After the last chunk, it returns the number of
	// uploaded objects.
	SaveObjects func(ctx context.Context, plan types.UID, chunk int32, docs []ledger.Document,
		last bool) (uploaded int, err error)
	// Verify checks which changes an approval of a plan would permit now.
	Verify registry.VerifyFunc
	// RebuildIndex rebuilds the index and compares the result with the previous entries.
	RebuildIndex func(context.Context) (index.Rebuilt, error)
	// Run runs the controllers and workers. The server calls it after both the server and the engine have started. It
	// must return within a few seconds after its context ends; until then, the server and the engine keep running.
	Run func(context.Context) error
	// Ready returns the reason why the server is not ready, such as kinds of installed providers that are not served
	// yet after a restart.
	Ready func() error
	// Close is called last in every case. It must stop all provider processes.
	Close func(context.Context) error
}

// hold returns which approved plans wait. Call it before the server serves.
func (c *completedConfig) hold(ctx context.Context) (h changes.Hold, err error) {
	h.Restored = c.restored
	if !c.store.Copied() {
		return h, nil
	}
	h.Copied, h.Given = true, map[types.UID]int{}
	err = c.eachPlan(ctx, func(p *v1alpha1.Plan) {
		if n := changes.ByPersons(p); n > 0 {
			h.Given[p.UID] = n
		}
	})
	return h, err
}

// authorizeReferences checks the references of a ProviderConfig to other namespaces, ConfigMaps and Secrets. A
// secretRef sends a Secret to the provider, as an expression does.
func (s *Server) authorizeReferences(ctx context.Context, who user.Info,
	cfg *v1alpha1.ProviderConfig) ([]string, error) {
	refs := catalog.References(cfg)
	for i, ref := range cfg.Spec.SecretRefs {
		refs = append(refs, lang.NewReference(lang.Address{Type: lang.TypeSecret, Name: ref.Name},
			fmt.Sprintf("spec.secretRefs[%d]", i)))
	}
	return s.kinds.MayRefer(ctx, who, cfg.Namespace, refs, true)
}

// changes returns a page of the changes of a plan, without values that the user may not read.
func (s *Server) changes(ctx context.Context, plan *v1alpha1.Plan, limit int,
	cont string) (*v1alpha1.PlanChangeList, error) {
	list, err := s.wiring.Changes(ctx, plan, limit, cont)
	if err != nil {
		return nil, err
	}
	who, ok := request.UserFrom(ctx)
	if !ok {
		return nil, errors.New("list changes of plan: the request has no user")
	}
	asker, reader := s.asker(who), rights.IdentityOf(who)
	if !requested(&reader, plan) {
		if err := withholdDiagnostics(ctx, asker, list); err != nil {
			return nil, err
		}
	}
	return list, withholdValues(ctx, asker, s.kinds.Kind, list)
}

// asker checks the rights of a user for one request.
func (s *Server) asker(who user.Info) *store.Asker {
	return rights.Access{Authorizer: s.config.generic.Authorization.Authorizer}.Asker(who)
}

func (s *Server) verify(ctx context.Context, plan *v1alpha1.Plan) (changes.Verification, error) {
	if s.deletions.isUndeleting(plan.Namespace) {
		return changes.Verification{}, apierrors.NewServiceUnavailable(messageUndeleting(plan.Namespace))
	}
	// a plan that approves itself is held
	if who, ok := request.UserFrom(ctx); s.config.store.Restored().Frozen(plan.Namespace) &&
		(!ok || who.GetName() != user.APIServerUser) {
		return changes.Verification{}, apierrors.NewBadRequest("The approval is refused. " + changes.MessageFrozen)
	}
	return s.wiring.Verify(ctx, plan)
}

// providerConfigs returns a function for kinds.Config.ProviderConfigs: it returns the provider of the named
// ProviderConfig, or those of all ProviderConfigs in the namespace if that does not exist.
func providerConfigs(stored *storage.Objects) func(ctx context.Context, namespace,
	name string) (map[string]string, error) {
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
