package changes

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/workflows"

	"k8s.io/apimachinery/pkg/util/wait"
)

// CancelPollInterval is the default interval at which a plan is checked for a cancel.
const CancelPollInterval = time.Second

// ErrCancelled is the error if a plan was cancelled before a provider was called to change anything.
var ErrCancelled = errors.New("the plan was cancelled")

// CancelReader reads whether plans were cancelled.
type CancelReader struct {
	Plans  store.Plans
	Logger *slog.Logger
	// Interval is the interval between two reads of a plan; 0 means CancelPollInterval.
	Interval time.Duration
}

// Every returns Interval or its default.
func (s CancelReader) Every() time.Duration { return cmp.Or(s.Interval, CancelPollInterval) }

// UntilCancelled returns a context that ends when the plan is cancelled, for use during planning. Planning changes
// nothing, so calls may be interrupted. The caller must call done.
func (s CancelReader) UntilCancelled(ctx context.Context, p workflows.Plan) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	go wait.UntilWithContext(ctx, func(context.Context) {
		if s.IsCancelled(p) {
			cancel(ErrCancelled)
		}
	}, s.Every())
	return ctx, func() { cancel(nil) }
}

// IsCancelled reports whether a plan was cancelled. It returns false if the plan cannot be read.
func (s CancelReader) IsCancelled(p workflows.Plan) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	cancelled, err := s.Plans.Cancelled(ctx, p.Namespace, p.Name, workflows.ObjectUID(p))
	if err != nil && !errors.Is(err, store.ErrGone) {
		s.Logger.Warn("check whether a plan was cancelled", "namespace", p.Namespace, "plan", p.Name, "error", err)
	}
	return cancelled // after an error, the next poll asks again
}
