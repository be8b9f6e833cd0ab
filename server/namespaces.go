package server

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	namespacestore "k8s.io/kubernetes/pkg/registry/core/namespace/storage"

	"github.com/hykube/hykube/server/registry"
)

// namespaceREST keeps a namespace as long as infrastructure stands behind its objects. Kubernetes would empty it in no
// order: the secrets that a destroy needs would be gone first, and no plan could be made in what is going away.
type namespaceREST struct {
	*namespacestore.REST
	inUse registry.InUseFunc
}

var _ rest.GracefulDeleter = (*namespaceREST)(nil)

// Delete deletes a namespace in which nothing lives.
func (r *namespaceREST) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc, opts *metav1.DeleteOptions) (runtime.Object, bool, error) {
	count, example, err := r.inUse(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	if err != nil {
		return nil, false, apierrors.NewInternalError(fmt.Errorf("find out what lives in namespace %q: %w", name, err))
	}
	if count > 0 {
		noun := fmt.Sprintf("%d resources live", count)
		if count == 1 {
			noun = "1 resource lives"
		}
		return nil, false, apierrors.NewConflict(corev1.Resource("namespaces"), name,
			fmt.Errorf("%s in it, such as %s; destroy what lives first, with kubectl hykube destroy --all -n %s, then delete this again", noun, example, name))
	}
	return r.REST.Delete(ctx, name, validate, opts)
}
