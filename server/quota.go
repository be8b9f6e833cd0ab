package server

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hykube/hykube/api/v1alpha1"
)

// countObjects returns the number of objects that a quota counts; false if the kind is not served. Plans that have
// ended are records and do not count.
func (s *Server) countObjects(ctx context.Context, resource schema.GroupResource,
	namespace string) (n int64, served bool, err error) {
	if resource == v1alpha1.Resource("plans") {
		n, err = s.openPlans(ctx, namespace)
		return n, true, err
	}
	stored, served := s.kinds.StoredAs(resource)
	if !served {
		return 0, false, nil
	}
	n, err = s.config.store.Objects().Count(ctx, stored, namespace)
	return n, true, err
}

func (s *Server) openPlans(ctx context.Context, namespace string) (n int64, err error) {
	for u, err := range s.config.store.Objects().List(ctx, v1alpha1.GroupName, namespace) {
		if err != nil {
			return 0, err
		}
		if u.GetKind() != "Plan" {
			continue
		}
		p := &v1alpha1.Plan{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, p); err != nil {
			return 0, fmt.Errorf("read plan %q: %w", u.GetName(), err)
		}
		if !p.Ended() {
			n++
		}
	}
	return n, nil
}
