package applying

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/resource"
)

// applyingAfter is the time after which the object of a running step reports it. Most steps are shorter, and write the
// status only once.
const applyingAfter = 2 * time.Second

// reportApplying writes to the object of a step that takes longer than applyingAfter that it is being applied. The
// caller must call end, and may call it twice.
func (a *Applier) reportApplying(ctx context.Context, c *ledger.Change) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	written := make(chan struct{})
	timer := time.AfterFunc(applyingAfter, func() {
		defer close(written)
		err := resource.WriteStatus(ctx, a.Objects, c.Object, nil, func(s *resource.Status) {
			if s.Generation == c.Object.Generation && ctx.Err() == nil {
				s.Reconcile(c.Object.Generation,
					fmt.Sprintf("An approved plan has started to %s.", changes.PlanVerbs[c.Action]))
			}
		})
		if err != nil && ctx.Err() == nil {
			a.Logger.WarnContext(ctx, "report a running change on its object", "address", c.Address, "error", err)
		}
	})
	return sync.OnceFunc(func() {
		cancel()
		if !timer.Stop() {
			<-written
		}
	})
}
