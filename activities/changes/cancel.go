package changes

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/workflows"
)

// CancelPollInterval is how often a plan is read to see whether it was cancelled.
const CancelPollInterval = time.Second

// ErrCancelled ends the work for a plan before a provider is asked to change anything.
var ErrCancelled = errors.New("the plan was cancelled")

// CancelReader reads whether plans were cancelled.
type CancelReader struct {
	Plans  store.Plans
	Logger *slog.Logger
	// Interval is how often a plan is read; 0 means CancelPollInterval.
	Interval time.Duration
}

// Every returns Interval, or its default.
func (s CancelReader) Every() time.Duration { return cmp.Or(s.Interval, CancelPollInterval) }

// UntilCancelled returns a context that ends when a plan, which is only being made, is cancelled: nothing that is asked while planning
// changes anything, so no answer is waited for. done must be called.
func (s CancelReader) UntilCancelled(ctx context.Context, p workflows.Plan) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		tick := time.NewTicker(s.Every())
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if s.IsCancelled(p) {
					cancel(ErrCancelled)
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, func() { cancel(nil) }
}

// IsCancelled says whether a plan was cancelled; false also when that cannot be read now.
func (s CancelReader) IsCancelled(p workflows.Plan) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	po, err := s.Plans.Get(ctx, p.Namespace, p.Name, workflows.ObjectUID(p))
	if err != nil {
		if !errors.Is(err, store.ErrGone) {
			s.Logger.Warn("check whether a plan was cancelled", "namespace", p.Namespace, "plan", p.Name, "error", err)
		}
		return false // it is looked at again
	}
	return po.Status.Cancel != nil
}
