package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/hykube/hykube/api/v1alpha1"
)

// watching holds the callbacks of a watch. A nil callback does nothing.
type watching struct {
	// changed is called with the plan at first and after each change. The watch ends if it returns true.
	changed func(*v1alpha1.Plan) (end bool, err error)
	// tick is called ten times per second.
	tick func() error
	// interrupted is called after a Ctrl-C; again receives further ones. The watch ends if it returns an error.
	interrupted func(again <-chan struct{}) error
	// block is the progress block on the terminal; nil if there is none.
	block *block
}

// watch watches a plan until a callback ends the watch.
func (s *session) watch(ctx context.Context, plan *v1alpha1.Plan, w watching) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	stop, done := s.interrupts()
	defer done()
	connected := make(chan bool)
	events := s.watchConnection(ctx, plan, connected)
	for {
		select {
		case up := <-connected:
			if w.block != nil && w.block.drawn > 0 {
				w.block.clear()
			}
			s.printConnection(up)
		case e, ok := <-events:
			if !ok {
				return ctx.Err()
			}
			if e.err != nil {
				return e.err
			}
			if end, err := w.changed(e.plan); end || err != nil {
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
			if err := w.interrupted(stop); err != nil {
				return err
			}
		}
	}
}

// printConnection prints that the server does not answer, or that it answers again.
func (s *session) printConnection(up bool) {
	if up {
		fmt.Fprintln(s.ErrOut, "The server answers again.")
		return
	}
	fmt.Fprintf(s.ErrOut, "The server at %s does not answer. The command keeps trying for a minute. When the server runs again, it continues its plans.\n", s.server())
}
