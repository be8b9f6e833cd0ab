package operation

import (
	"context"
	"fmt"
	"time"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/planapi"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/cli/terminal"
)

// Watching holds the callbacks of a watch. A nil callback does nothing.
type Watching struct {
	// Changed is called with the plan at first and after each change. The watch ends if it returns true.
	Changed func(*v1alpha1.Plan) (end bool, err error)
	// tick is called ten times per second.
	tick func() error
	// Interrupted is called after a Ctrl-C; again receives further ones. The watch ends if it returns an error.
	Interrupted func(again <-chan struct{}) error
	// block is the progress block on the terminal; nil if there is none.
	block *terminal.Block
}

// Watch watches a plan until a callback ends the watch.
func Watch(ctx context.Context, s *session.Session, plan *v1alpha1.Plan, w Watching) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	stop, done := s.Interrupts()
	defer done()
	connected := make(chan bool)
	events := planapi.WatchConnection(ctx, s, plan, connected)
	for {
		select {
		case up := <-connected:
			if w.block != nil && w.block.Drawn > 0 {
				w.block.Clear()
			}
			printConnection(s, up)
		case e, ok := <-events:
			if !ok {
				return ctx.Err()
			}
			if e.Err != nil {
				return e.Err
			}
			if end, err := w.Changed(e.Plan); end || err != nil {
				return err
			}
		case <-tick.C:
			if w.tick == nil {
				continue
			}
			if err := w.tick(); err != nil {
				return err
			}
		case <-stop:
			if err := w.Interrupted(stop); err != nil {
				return err
			}
		}
	}
}

// printConnection prints that the server does not answer, or that it answers again.
func printConnection(s *session.Session, up bool) {
	if up {
		fmt.Fprintln(s.ErrOut, "The server answers again.")
		return
	}
	fmt.Fprintf(s.ErrOut, "The server at %s does not answer. The command keeps trying for a minute. When the server runs again, it continues its plans.\n", s.Server())
}
