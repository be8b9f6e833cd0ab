package server

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/server/engine"
	"github.com/hykube/hykube/server/kinds"
	"github.com/hykube/hykube/server/registry"
	"github.com/hykube/hykube/server/storage"
)

// Components is what the server offers to the packages that Config.Wire connects.
type Components struct {
	// DataDir is the server's directory.
	DataDir string
	// ProviderMirrors and then NetworkMirror, if it is set, are looked at before any registry.
	ProviderMirrors []string
	NetworkMirror   string
	// PlanHistoryLimit and PlanHistoryAge bound which finished plans are kept; 0 is no bound.
	PlanHistoryLimit int
	PlanHistoryAge   time.Duration
	// Loopback reaches this server as system:apiserver. It serves once Wiring.Run is called, not before.
	Loopback *rest.Config
	// KV is where the ledger is kept.
	KV *storage.KV
	// Objects reads objects as they are stored.
	Objects *storage.Objects
	// Kinds serves the providers' kinds.
	Kinds *kinds.Kinds
	// Engine is Temporal; its Client is there once Wiring.Run is called.
	Engine *engine.Engine
	Logger *slog.Logger
}

// Wiring is what Config.Wire connects. Every field is required.
type Wiring struct {
	// InUse says how many living resources need a Namespace, a Provider, a ProviderConfig, a Secret or a ConfigMap, and names one.
	InUse registry.InUseFunc
	// Named says whether anything names such an object.
	Named registry.NamedFunc
	// Changes pages through the changes of a plan.
	Changes registry.ChangesFunc
	// SaveObjects keeps a chunk of the objects of a speculative plan, and says after the last one how many objects the upload has.
	SaveObjects func(ctx context.Context, plan types.UID, chunk int32, docs []ledger.Document, last bool) (uploaded int, err error)
	// Verify looks what an approval of a plan would let happen now.
	Verify registry.VerifyFunc
	// State reads the raw provider state behind an object of a provider's kind.
	State func(context.Context, metav1.Object, kinds.Kind) ([]byte, error)
	// Taint marks the infrastructure behind an object of a provider's kind to be replaced by the next plan, or takes the mark away. It
	// returns whether the object is as it was applied.
	Taint func(ctx context.Context, obj metav1.Object, kind kinds.Kind, tainted bool) (applied bool, err error)
	// Undelete takes the deletion of an object of a provider's kind back; see kinds.Config.
	Undelete func(ctx context.Context, obj metav1.Object, kind kinds.Kind, clear func(kinds.Undeleted) error, mark func() error) error
	// Deletion says what there is to know for whoever deleted an object of a provider's kind.
	Deletion func(ctx context.Context, obj metav1.Object, kind kinds.Kind) (kinds.Deletion, error)
	// Query asks a provider what exists.
	Query registry.QueryFunc
	// Evaluate evaluates an expression over the recorded values.
	Evaluate registry.EvaluateFunc
	// Run is the controllers and workers. It is called when the server answers and the engine runs, and returns when its
	// context ends, within a few seconds: the server and the engine are still there for it to finish with.
	Run func(context.Context) error
	// Ready tells why the server should not get requests yet, such as that the kinds of installed providers are not served
	// again after a restart.
	Ready func() error
	// Close is called last, however the server ends: it leaves no provider process behind.
	Close func(context.Context) error
}

// The functions below ask the wiring at the time of the request: Config.Wire runs after the handlers are made.

func (s *Server) inUse(ctx context.Context, obj metav1.Object) (int, string, error) {
	return s.wiring.InUse(ctx, obj)
}

func (s *Server) named(ctx context.Context, obj metav1.Object) (bool, error) {
	return s.wiring.Named(ctx, obj)
}

// authorizeReferences asks about the references of a ProviderConfig that reach out of its namespace, or to ConfigMaps and Secrets. A
// secretRef sends a Secret to the provider as an expression does.
func (s *Server) authorizeReferences(ctx context.Context, who user.Info, cfg *v1alpha1.ProviderConfig) ([]string, error) {
	refs := catalog.References(cfg)
	for i, ref := range cfg.Spec.SecretRefs {
		refs = append(refs, lang.NewReference(lang.Address{Type: lang.TypeSecret, Name: ref.Name}, fmt.Sprintf("spec.secretRefs[%d]", i)))
	}
	return s.kinds.MayRefer(ctx, who, cfg.Namespace, refs, true)
}

func (s *Server) changes(ctx context.Context, plan *v1alpha1.Plan, limit int, cont string) (*v1alpha1.PlanChangeList, error) {
	return s.wiring.Changes(ctx, plan, limit, cont)
}

func (s *Server) verify(ctx context.Context, plan *v1alpha1.Plan) (changes.Verification, error) {
	if s.deletions.isUndeleting(plan.Namespace) {
		return changes.Verification{}, apierrors.NewServiceUnavailable(messageUndeleting(plan.Namespace))
	}
	return s.wiring.Verify(ctx, plan)
}

func (s *Server) state(ctx context.Context, obj metav1.Object, kind kinds.Kind) ([]byte, error) {
	return s.wiring.State(ctx, obj, kind)
}

func (s *Server) taint(ctx context.Context, obj metav1.Object, kind kinds.Kind, tainted bool) (applied bool, err error) {
	return s.wiring.Taint(ctx, obj, kind, tainted)
}

func (s *Server) deletion(ctx context.Context, obj metav1.Object, kind kinds.Kind) (kinds.Deletion, error) {
	return s.wiring.Deletion(ctx, obj, kind)
}

func (s *Server) undelete(ctx context.Context, obj metav1.Object, kind kinds.Kind, clear func(kinds.Undeleted) error, mark func() error) error {
	return s.wiring.Undelete(ctx, obj, kind, clear, mark)
}

func (s *Server) query(ctx context.Context, who v1alpha1.Identity, q *v1alpha1.Query) error {
	return s.wiring.Query(ctx, who, q)
}

func (s *Server) evaluate(ctx context.Context, who v1alpha1.Identity, e *v1alpha1.Evaluation) error {
	return s.wiring.Evaluate(ctx, who, e)
}

// providerConfigs returns the provider of the named ProviderConfig of a namespace, by its name. Where there is none of the name, it
// returns all of the namespace.
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
