package registry

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/hykube/hykube/api/v1alpha1"
)

// stateAnnotation is the annotation of the audit log about a push or a pull of a Terraform state.
const stateAnnotation = "audit.hykube.io/state"

// newStatePushes returns the storage for StatePushes.
func newStatePushes(backend *Backend) rest.Storage {
	return newStateRequests("statepush", func() *v1alpha1.StatePush { return new(v1alpha1.StatePush) },
		func(ctx context.Context, who v1alpha1.Identity, p *v1alpha1.StatePush) error {
			spec := &p.Spec
			audit.AddAuditAnnotation(ctx, stateAnnotation,
				fmt.Sprintf("push %.64s page=%d commit=%t force=%t module=%.253s lineage=%.64s serial=%d entries=%d",
					spec.ID, spec.Page, spec.Commit, spec.Force, spec.Module, spec.Lineage, spec.Serial,
					len(spec.Entries)))
			err := backend.PushState(ctx, who, p)
			spec.Entries = nil // the response needs no secrets
			return err
		})
}

// newStatePulls returns the storage for StatePulls.
func newStatePulls(backend *Backend) rest.Storage {
	return newStateRequests("statepull", func() *v1alpha1.StatePull { return new(v1alpha1.StatePull) },
		func(ctx context.Context, who v1alpha1.Identity, p *v1alpha1.StatePull) error {
			err := backend.PullState(ctx, who, p)
			audit.AddAuditAnnotation(ctx, stateAnnotation,
				fmt.Sprintf("pull module=%.253s entries=%d", p.Spec.Module, len(p.Status.Entries)))
			return err
		})
}

// newStateRequests returns the storage for a kind that answers with the rights of the user of a request. A dry run does
// nothing.
func newStateRequests[T object](singular string, empty func() T,
	answer func(context.Context, v1alpha1.Identity, T) error) rest.Storage {
	return answeredREST[T]{
		rest.NewDefaultTableConvertor(v1alpha1.Resource(singular)), singular, empty,
		func(ctx context.Context, obj T, validate rest.ValidateObjectFunc, opts *metav1.CreateOptions) error {
			if err := validate(ctx, obj); err != nil || len(opts.DryRun) > 0 {
				return err
			}
			who, err := requireUser(ctx, "answer "+singular)
			if err != nil {
				return err
			}
			return apiError(answer(ctx, who, obj))
		},
	}
}
