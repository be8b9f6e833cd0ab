package registry

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/index"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/server/kinds"
)

// Backend holds functions of the server that answer requests from the ledger, the providers and the controllers. These
// exist only after the registries, so the server sets the functions after NewGroup, before the first request. Every
// function is required.
type Backend struct {
	// InUse returns the number of existing resources that need a Namespace, Provider, ProviderConfig, Secret or
	// ConfigMap, and the name of one.
	InUse func(ctx context.Context, obj metav1.Object) (count int, example string, err error)
	// ProviderNamespaces counts the objects and instances of a Provider's kinds in each namespace.
	ProviderNamespaces func(ctx context.Context, provider string) (map[string]int, error)
	// Named reports whether any object refers to a Namespace, Provider, ProviderConfig, Secret or ConfigMap. Only then
	// can a resource need it now or soon.
	Named func(ctx context.Context, obj metav1.Object) (bool, error)
	// Instances returns a page of at most limit instances of a ResourceSet. cont is the token of the previous page.
	Instances func(ctx context.Context, set *v1alpha1.ResourceSet, limit int,
		cont string) (*v1alpha1.ResourceSetInstanceList, error)
	// Index has the entries of all objects and of all instances of ResourceSets; nil if there are no instances.
	// Instance returns an instance of it with its status.
	Index    *index.Index
	Instance func(ctx context.Context, instance index.Located) (*unstructured.Unstructured, error)
	// Record returns the record of the object with the namespace and the UID of a reference.
	Record func(ctx context.Context, ref v1alpha1.ObjectReference) (*ledger.Instance, error)
	// DestroysInstances returns an approved plan that will still destroy or forget instances of a ResourceSet or a
	// Module, or nil.
	DestroysInstances func(ctx context.Context, owner metav1.Object) (*v1alpha1.Plan, error)
	// ModuleDeletion returns the consequences of the deletion of a Module.
	ModuleDeletion func(ctx context.Context, m *v1alpha1.Module) (kinds.Deletion, error)
	// FormerSet returns a ResourceSet that no longer has an instance with the address of ref, although the
	// infrastructure of that instance still exists. It returns "" if there is none. It ignores the set with the UID
	// except.
	FormerSet func(ctx context.Context, ref v1alpha1.ObjectReference, except types.UID) (set string, err error)
	// Judge evaluates the policies for a plan. Automatic reports whether a policy for the namespace has a rule with the
	// effect AllowAutomatic.
	Judge     JudgeFunc
	Automatic func(ctx context.Context, namespace string) (bool, error)
	// CurrentStacks waits until the Stacks of a namespace, or of all if it is empty, show all earlier writes. It gives
	// up after a few seconds.
	CurrentStacks func(ctx context.Context, namespace string)
	// SelectsAny reports whether any resource of a namespace has labels that are selected. It returns true as long as
	// the server starts.
	SelectsAny func(ctx context.Context, namespace string, selects func(labels.Set) bool) (bool, error)
	// CancelRun asks the running workflow of a stack to end, or terminates it if no worker has begun it. reason is a
	// sentence for the history of the workflow. found is false if no workflow of the stack runs.
	CancelRun func(ctx context.Context, stack *v1alpha1.Stack, reason string) (found bool, err error)
	// Query makes a provider list existing resources.
	Query QueryFunc
	// PushState takes a page of a Terraform state into the records of a namespace, or commits the pages; PullState
	// returns a page of the records. Both set the status, with the rights of who.
	PushState func(ctx context.Context, who v1alpha1.Identity, p *v1alpha1.StatePush) error
	PullState func(ctx context.Context, who v1alpha1.Identity, p *v1alpha1.StatePull) error
	// Evaluate evaluates an expression with the rights of who, and sets e.Status.
	Evaluate func(ctx context.Context, who v1alpha1.Identity, e *v1alpha1.Evaluation) error
}
