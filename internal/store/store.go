// Package store has the interfaces through which plans read and write the objects of the API server and check rights.
package store

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/hykube/hykube/api/v1alpha1"

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
	// Secret reads one key of a Secret. It returns a *SecretError when there is no such Secret or key.
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

// SecretError says that a Secret, or a key in one, does not exist.
type SecretError struct{ Namespace, Name, Key string }

func (e *SecretError) Error() string {
	if e.Key == "" {
		return fmt.Sprintf("there is no Secret %q in the namespace %q", e.Name, e.Namespace)
	}
	return fmt.Sprintf("the Secret %q in the namespace %q has no key %q", e.Name, e.Namespace, e.Key)
}

// Access answers what somebody may do.
type Access interface {
	// MayUse says whether somebody has the verb "use" on a ProviderConfig.
	MayUse(ctx context.Context, who v1alpha1.Identity, namespace, name string) (bool, error)
	// MayRead says whether somebody has the verb "get" on an object; resource is its plural, such as "secrets", also
	// with a subresource, such as "sim-networks/state". With an empty name it is about all objects of the namespace.
	MayRead(ctx context.Context, who v1alpha1.Identity, namespace, group, resource, name string) (bool, error)
}

// IgnoreGone is nil for an object that does not exist any more.
func IgnoreGone(err error) error {
	if errors.Is(err, ErrGone) {
		return nil
	}
	return err
}
