package planapi

import (
	"context"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/session"
)

// Complete completes plans of the namespace with their state. A nil keep permits all.
func Complete(s *session.Session, keep func(*v1alpha1.Plan) bool) session.Completer {
	return s.CompleteWith(1, func(ctx context.Context, _ []string, _ string) (out []string, err error) {
		plans, err := List(ctx, s, s.Namespace)
		for _, p := range plans {
			if keep == nil || keep(&p) {
				out = append(out, p.Name+"\t"+State(&p))
			}
		}
		return out, err
	})
}
