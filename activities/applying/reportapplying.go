package applying

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/resource"
)

// applyingAfter is how long a step takes before its object says that it is being applied. Most steps are shorter, and write once.
const applyingAfter = 2 * time.Second

// reportApplying makes the object of a step that takes a while say that it is being applied. The function that it returns ends that,
// and may be called twice.
func (a *Applier) reportApplying(ctx context.Context, c *ledger.Change) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	over := make(chan struct{})
	say := time.AfterFunc(applyingAfter, func() {
		defer close(over)
		verb := strings.TrimSuffix(changes.PlanVerbs[c.Action], " it")
		err := resource.WriteStatus(ctx, a.Objects, c.Object, func(s *resource.Status) {
			if s.Generation == c.Object.Generation && ctx.Err() == nil {
				s.Reconcile(c.Object.Generation, fmt.Sprintf("A plan was approved, and its %s is under way.", verb))
			}
		})
		if err != nil && ctx.Err() == nil {
			a.Logger.WarnContext(ctx, "say that a change is under way", "address", c.Address, "error", err)
		}
	})
	return sync.OnceFunc(func() {
		cancel()
		if !say.Stop() {
			<-over
		}
	})
}
