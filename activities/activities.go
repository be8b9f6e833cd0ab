// Package activities has the Temporal activities of Hykube: they read objects, ask providers, keep the ledger
// and write what came of it back to the objects. Each may run twice, heartbeats while it waits for others, and takes up
// what an earlier attempt left. It imports workflows for names and structs, and internal packages; how objects are
// stored and who may do what is behind the interfaces here.
package activities

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"time"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/workflows"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// ErrGone says that an object does not exist, or not with that UID.
var ErrGone = errors.New("the object does not exist any more")

// Objects are the objects of the dynamic kinds.
type Objects interface {
	// List reads every resource of a namespace, of all kinds.
	List(ctx context.Context, namespace string) iter.Seq2[*unstructured.Unstructured, error]
	// Get reads one object. It returns ErrGone when there is none with the reference's UID; an empty UID matches any.
	Get(ctx context.Context, ref v1alpha1.ObjectReference) (*unstructured.Unstructured, error)
	// Plural is the resource that RBAC knows the kind of a reference by, such as "sim-networks".
	Plural(ref v1alpha1.ObjectReference) (string, error)
	// UpdateStatus replaces the status of an object by the one that change makes of it, and tries again when another writer was
	// first. A status that is what it was is not written. It returns ErrGone as Get does.
	UpdateStatus(ctx context.Context, ref v1alpha1.ObjectReference, change func(*unstructured.Unstructured) map[string]any) error
	// Hold puts the finalizer on an object, so that it outlives its infrastructure. It returns ErrGone as Get does.
	Hold(ctx context.Context, obj *unstructured.Unstructured) error
	// Release takes the finalizer off an object. An object that is gone is released already.
	Release(ctx context.Context, ref v1alpha1.ObjectReference) error
}

// Plans are the Plan objects.
type Plans interface {
	// Get reads a plan. It returns ErrGone when there is none with that UID.
	Get(ctx context.Context, namespace, name string, uid types.UID) (*v1alpha1.Plan, error)
	// UpdateStatus changes the status of a plan, and tries again when somebody else was first.
	UpdateStatus(ctx context.Context, namespace, name string, uid types.UID, change func(*v1alpha1.PlanStatus)) error
	// Approve takes a decision about a plan in the name of whoever the approval says.
	Approve(ctx context.Context, namespace, name string, uid types.UID, approval v1alpha1.PlanApproval) error
}

// Configs are the ProviderConfigs, and the ConfigMaps and Secrets that they and expressions refer to.
type Configs interface {
	// Get reads a ProviderConfig; nil when there is none of that name.
	Get(ctx context.Context, namespace, name string) (*v1alpha1.ProviderConfig, error)
	// Secret reads one key of a Secret.
	Secret(ctx context.Context, namespace, name, key string) ([]byte, error)
	// ConfigMap reads all keys of a ConfigMap, those of binaryData among them; nil when there is none of that name.
	ConfigMap(ctx context.Context, namespace, name string) (map[string][]byte, error)
	// ConfigMapNames lists the names of the ConfigMaps of a namespace, to suggest one.
	ConfigMapNames(ctx context.Context, namespace string) ([]string, error)
	// SecretData reads all keys of a Secret; nil when there is none of that name.
	SecretData(ctx context.Context, namespace, name string) (map[string][]byte, error)
	// Leaving names what of a ProviderConfig, and of the ConfigMaps and Secrets that it reads, is being deleted or gone; empty when all
	// of it stays.
	Leaving(ctx context.Context, cfg *v1alpha1.ProviderConfig) (what string, err error)
	// Terminating says whether a namespace is being deleted. It fails while that deletion is being taken back.
	Terminating(ctx context.Context, namespace string) (bool, error)
}

// Access answers what somebody may do.
type Access interface {
	// MayUse says whether somebody has the verb "use" on a ProviderConfig.
	MayUse(ctx context.Context, who v1alpha1.Identity, namespace, name string) (bool, error)
	// MayRead says whether somebody has the verb "get" on an object; resource is its plural, such as "secrets", also
	// with a subresource, such as "sim-networks/state". With an empty name it is about all objects of the namespace.
	MayRead(ctx context.Context, who v1alpha1.Identity, namespace, group, resource, name string) (bool, error)
}

// Config is what the activities work with; all fields are needed.
type Config struct {
	Objects Objects
	Plans   Plans
	Configs Configs
	Access  Access
	Catalog *catalog.Catalog
	Ledger  *ledger.Ledger
	Logger  *slog.Logger
}

// Activities carries out what the workflows order.
type Activities struct {
	Config
	progress *progress
	limits   *limits
	locks    *objectLocks
	cancels  *cancelWatcher
	// source acquires a configured process of a provider; nil means the catalog's. Tests set it.
	source providerSource
}

// New returns the activities over c.
func New(c Config) *Activities {
	return &Activities{Config: c, progress: newProgress(c.Plans, c.Logger), limits: newLimits(), locks: newObjectLocks(), cancels: newCancelWatcher(c.Plans, c.Logger)}
}

// Register makes the workflows and activities known to a worker.
func (a *Activities) Register(w worker.Registry) {
	for name, fn := range map[string]any{
		workflows.ActivitySurvey:  a.Survey,
		workflows.ActivityPropose: a.Propose,
		workflows.ActivityPublish: a.Publish,
		workflows.ActivityFail:    a.Fail,
		workflows.ActivityBegin:   a.Begin,
		workflows.ActivityStep:    a.Step,
		workflows.ActivityLane:    a.Lane,
		workflows.ActivityFinish:  a.Finish,
	} {
		w.RegisterActivityWithOptions(fn, activity.RegisterOptions{Name: name})
	}
}

// heartbeatEvery must be well under the heartbeat timeout of the workflows.
const heartbeatEvery = 5 * time.Second

// heartbeat tells Temporal that the activity lives, until the returned function is called.
func heartbeat(ctx context.Context) (stop func()) {
	done := make(chan struct{})
	go func() {
		tick := time.NewTicker(heartbeatEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				activity.RecordHeartbeat(ctx)
			case <-done:
				return
			}
		}
	}()
	return func() { close(done) }
}

// final marks an error that another attempt would only repeat.
func final(err error) error {
	return temporal.NewNonRetryableApplicationError(err.Error(), workflows.ErrorFinal, err)
}

func uidOf(p workflows.Plan) types.UID { return types.UID(p.UID) }

func (a *Activities) plan(ctx context.Context, p workflows.Plan) (*v1alpha1.Plan, error) {
	obj, err := a.Plans.Get(ctx, p.Namespace, p.Name, uidOf(p))
	if errors.Is(err, ErrGone) {
		return nil, final(errors.New("the Plan object was deleted"))
	}
	return obj, err
}

// ignoreGone is nil for an object that does not exist any more.
func ignoreGone(err error) error {
	if errors.Is(err, ErrGone) {
		return nil
	}
	return err
}

// planned reads a plan that is being made. In a namespace that is being deleted every plan that changes something destroys: what is
// there is marked for deletion, or will be in a moment.
func (a *Activities) planned(ctx context.Context, p workflows.Plan) (*v1alpha1.Plan, error) {
	po, err := a.plan(ctx, p)
	if err != nil || po.Spec.Destroy || po.Spec.RefreshOnly {
		return po, err
	}
	if po.Spec.Destroy, err = a.Configs.Terminating(ctx, po.Namespace); err != nil {
		return nil, err
	}
	return po, nil
}

func now() *metav1.Time { return new(metav1.Now()) }
