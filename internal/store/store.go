// Package store defines the interfaces through which plans access the objects of the API server and check rights.
package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/hykube/hykube/api/v1alpha1"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// ErrGone is the error if an object does not exist, or has another UID.
var ErrGone = errors.New("the object no longer exists")

// FailedError is the error of a store that did not answer, or could not. The same call may succeed later.
type FailedError struct{ cause error }

func (e *FailedError) Error() string { return e.cause.Error() }

func (e *FailedError) Unwrap() error { return e.cause }

// Failed returns the *FailedError for an error of a store; nil for nil. It returns the error of a call whose caller has
// given up as it is.
func Failed(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &FailedError{err}
}

// IsFailed reports whether a store failed.
func IsFailed(err error) bool {
	_, ok := errors.AsType[*FailedError](err)
	return ok
}

// Objects accesses the objects of the dynamic kinds.
type Objects interface {
	// Get returns one object, or an instance of a ResourceSet. It returns ErrGone if there is none with the reference's
	// UID. An empty UID matches any object. The caller must not change spec and lifecycle of the result.
	Get(ctx context.Context, ref v1alpha1.ObjectReference) (*unstructured.Unstructured, error)
	// GetSpec is Get without the status.
	GetSpec(ctx context.Context, ref v1alpha1.ObjectReference) (*unstructured.Unstructured, error)
	// Plural returns the plural of the reference's kind for RBAC, such as "sim-networks".
	Plural(ref v1alpha1.ObjectReference) (string, error)
	// UpdateStatus replaces the status of an object by the result of change. It retries after a conflict and skips the
	// write if the status is unchanged. It returns ErrGone as Get does. known is the object as the caller read it last,
	// without a change, so that UpdateStatus reads it only if another writer has changed it; nil makes it read the
	// object.
	UpdateStatus(ctx context.Context, ref v1alpha1.ObjectReference, known *unstructured.Unstructured,
		change func(*unstructured.Unstructured) map[string]any) error
	// NewInstanceStatus returns the status of an instance of a ResourceSet after change, for a caller that writes it to
	// the ledger together with other rows. known is the instance as Get returned it. The result is nil if the caller
	// must call UpdateStatus instead: known is no instance, is outdated, or has that status.
	NewInstanceStatus(ctx context.Context, known *unstructured.Unstructured,
		change func(*unstructured.Unstructured) map[string]any) (*InstanceStatus, error)
	// AddFinalizer adds the finalizer hykube.io/state to an object, so that it outlives its infrastructure. It returns
	// ErrGone as Get does, and if the object was changed or marked for deletion since it was read. It returns the
	// object as it is now.
	AddFinalizer(ctx context.Context, obj *unstructured.Unstructured) (*unstructured.Unstructured, error)
	// RemoveFinalizer removes the finalizer. It succeeds if the object no longer exists. A ResourceSet keeps it until
	// no instance has a record.
	RemoveFinalizer(ctx context.Context, ref v1alpha1.ObjectReference) error
}

// InstanceStatus is a status of an instance of a ResourceSet that the caller is about to write.
type InstanceStatus struct {
	Namespace string
	// Set and UID are the UIDs of the set and of the instance.
	Set, UID types.UID
	// Value is the status as JSON. Revision is that of the stored status; 0 without one.
	Value    []byte
	Revision int64
	// Written must be called after the write. It records the Event for the transition.
	Written func()
}

// Plans accesses the objects of kind Plan.
type Plans interface {
	// Get returns a plan. It returns ErrGone if there is none with that UID.
	Get(ctx context.Context, namespace, name string, uid types.UID) (*v1alpha1.Plan, error)
	// Cancelled reports whether a user cancelled a plan. The answer comes from a cache, so it may be slightly out of
	// date. It returns ErrGone if there is no plan with that UID.
	Cancelled(ctx context.Context, namespace, name string, uid types.UID) (bool, error)
	// UpdateStatus changes the status of a plan. It retries after a conflict.
	UpdateStatus(ctx context.Context, namespace, name string, uid types.UID, change func(*v1alpha1.PlanStatus)) error
	// Approve records a decision about a plan on behalf of approval.By.
	Approve(ctx context.Context, namespace, name string, uid types.UID, approval v1alpha1.PlanApproval) error
}

// Configs accesses the ProviderConfigs, and the ConfigMaps and Secrets that they and expressions refer to.
type Configs interface {
	// Get returns a ProviderConfig, or nil if there is none of that name.
	Get(ctx context.Context, namespace, name string) (*v1alpha1.ProviderConfig, error)
	// Secret reads one key of a Secret. It returns a *SecretError when there is no such Secret or key.
	Secret(ctx context.Context, namespace, name, key string) ([]byte, error)
	// ConfigMap returns all keys of a ConfigMap, including those of binaryData. It returns nil if there is none of that
	// name.
	ConfigMap(ctx context.Context, namespace, name string) (map[string][]byte, error)
	// ConfigMapNames returns the names of the ConfigMaps in a namespace, for suggestions.
	ConfigMapNames(ctx context.Context, namespace string) ([]string, error)
	// SecretData returns all keys of a Secret, or nil if there is none of that name.
	SecretData(ctx context.Context, namespace, name string) (map[string][]byte, error)
	// Leaving returns the name of an object that is being deleted or no longer exists: the ProviderConfig, or a
	// ConfigMap or Secret that it reads. It returns "" if there is none.
	Leaving(ctx context.Context, cfg *v1alpha1.ProviderConfig) (what string, err error)
	// Writers returns the users who wrote an object that is no resource. found is false if there is none of that name.
	Writers(ctx context.Context, of Written) (w Writers, found bool, err error)
	// Terminating reports whether a namespace is being deleted. It fails while the server reverts that deletion.
	Terminating(ctx context.Context, namespace string) (bool, error)
}

// Written names an object whose writers Configs knows.
type Written struct {
	// Kind is ResourceSet, Module, ConfigMap or Secret.
	Kind, Namespace, Name string
}

// Writers are the users who wrote an object that is no resource.
type Writers struct {
	// List has the users. What they wrote of a ConfigMap or Secret are keys: see contributor.WritersOf.
	List []v1alpha1.Contributor
	// Keys is the source of the keys of a ResourceSet; nil if its spec has them.
	Keys *v1alpha1.ForEachConfigMap
	// Files is the name of the ConfigMap with the files of a Module; empty for other objects.
	Files string
	// Parts has the users who last wrote each part of the spec of a Module; nil for other objects. An apply does not
	// end them.
	Parts []v1alpha1.Contributor
}

// String returns the kind and the name, as in: ConfigMap hosts.
func (w Written) String() string { return w.Kind + " " + w.Name }

// SecretError is the error for a missing Secret or a missing key.
type SecretError struct{ Namespace, Name, Key string }

func (e *SecretError) Error() string {
	if e.Key == "" {
		return fmt.Sprintf("there is no Secret %q in the namespace %q", e.Name, e.Namespace)
	}
	return fmt.Sprintf("the Secret %q in the namespace %q has no key %q", e.Name, e.Namespace, e.Key)
}

// PlanPolicies holds the policies for the plans of a namespace, and the data that they need.
type PlanPolicies struct {
	Policies []v1alpha1.PlanPolicy
	Cluster  []v1alpha1.ClusterPlanPolicy
	// NamespaceLabels are the labels of the namespace.
	NamespaceLabels map[string]string
}

// Policies reads PlanPolicies, ClusterPlanPolicies and PlanRecords.
type Policies interface {
	// Of returns the policies for the plans of a namespace.
	Of(ctx context.Context, namespace string) (*PlanPolicies, error)
	// Earlier returns the records of at most limit plans of a namespace, those with the latest decision first.
	Earlier(ctx context.Context, namespace string, limit int) ([]v1alpha1.PlanRecord, error)
}

// Access checks the rights of users.
type Access interface {
	// May reports whether a user has a right.
	May(ctx context.Context, who v1alpha1.Identity, right Right) (bool, error)
}

// Users knows what users are now.
type Users interface {
	// Current returns a user whom a plan or a policy names with the groups that he has now. It returns false, and a
	// user without groups, if the server knows that the user is gone.
	Current(who v1alpha1.Identity) (v1alpha1.Identity, bool)
}

// IgnoreGone returns nil if err is ErrGone, else err.
func IgnoreGone(err error) error {
	if errors.Is(err, ErrGone) {
		return nil
	}
	return err
}
