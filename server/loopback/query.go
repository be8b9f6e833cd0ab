package loopback

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/query"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/server/registry"
)

// Query converts the errors of ask to API errors.
func Query(ask registry.QueryFunc) registry.QueryFunc {
	return func(ctx context.Context, who v1alpha1.Identity, q *v1alpha1.Query) error {
		err := ask(ctx, who, q)
		if bad, ok := errors.AsType[*query.QueryError](err); ok {
			return apierrors.NewInvalid(v1alpha1.Kind("Query"), q.Name, field.ErrorList{
				{Type: field.ErrorTypeInvalid, Field: bad.Field, BadValue: field.OmitValueType{}, Detail: bad.Detail},
			})
		}
		if _, ok := errors.AsType[*scope.ForbiddenError](err); ok {
			return apierrors.NewForbidden(v1alpha1.Resource("queries"), q.Name, err)
		}
		return err
	}
}
