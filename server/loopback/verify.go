package loopback

import (
	"context"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/server/registry"
)

// Verify puts what the activities find of a plan that is to be approved into the terms of the registry.
func Verify(verify func(context.Context, *v1alpha1.Plan) (changes.Verification, error)) registry.VerifyFunc {
	return func(ctx context.Context, p *v1alpha1.Plan) (registry.Verification, error) {
		found, err := verify(ctx, p)
		out := registry.Verification{Left: found.Left, Needing: found.Needing}
		for _, o := range found.Blocked {
			out.Blocked = append(out.Blocked, registry.Obstacle(o))
		}
		for _, o := range found.Stale {
			out.Stale = append(out.Stale, registry.Obstacle(o))
		}
		return out, err
	}
}
