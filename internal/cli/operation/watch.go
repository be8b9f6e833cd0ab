package operation

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/planapi"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/cli/terminal"
)

// HoldInterrupts keeps each Ctrl-C for the next watch of a plan, so that none ends the command between an approval and
// its watch. The caller must call release.
func HoldInterrupts(s *session.Session) (release func()) {
	own := s.Interrupts
	pressed, done := own()
	s.Interrupts = func() (<-chan struct{}, func()) { return pressed, func() {} }
	return func() {
		s.Interrupts = own
		done()
	}
}

// interrupted asks after Ctrl-C whether to cancel the plan or only to stop watching it. The question ends with the
// plan.
func (f *follower) interrupted(ctx context.Context, again <-chan struct{}) error {
	if f.block != nil {
		f.block.Clear()
	}
	if !f.Ask {
		return ErrDetached
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	for ended := f.ended(watching); ; {
		fmt.Fprintf(f.ErrOut, "\nThe server is applying plan %q. Cancel the plan (c), detach and leave it running (d), or continue to watch (Enter)? ", f.plan.Name)
		select {
		case a := <-f.Answers():
			if a.Err != nil && a.Err != io.EOF {
				return ErrDetached
			}
			switch text := strings.TrimSpace(a.Text); strings.ToLower(text) {
			case "c", "cancel":
				return f.stopPlan(ctx)
			case "d", "detach":
				return ErrDetached
			case "":
				return nil
			default:
				fmt.Fprintf(f.ErrOut, "%q is not an answer: write c or d, or press Enter.", text)
			}
		case <-ended:
			fmt.Fprintf(f.ErrOut, "\nPlan %q has ended.\n", f.plan.Name)
			return nil
		case <-again:
			return ErrDetached
		}
	}
}

// ended returns a channel that is closed when the plan has ended.
func (f *follower) ended(ctx context.Context) <-chan struct{} {
	ended, plan := make(chan struct{}), f.plan
	go func() {
		for e := range planapi.Watch(ctx, f.Session, plan) {
			if e.Err != nil {
				return // the watch of the follower detects it, too
			}
			if e.Plan.Ended() {
				close(ended)
				return
			}
		}
	}()
	return ended
}

// stopPlan cancels the plan. If the plan has already ended, the caller prints its result.
func (f *follower) stopPlan(ctx context.Context) error {
	_, err := planapi.Cancel(ctx, f.Session, f.plan)
	if apierrors.IsConflict(err) {
		if now, readErr := planapi.Get(ctx, f.Session, f.plan.Namespace, f.plan.Name); readErr == nil &&
			now.UID == f.plan.UID && now.Ended() {
			fmt.Fprintf(f.ErrOut, "Plan %q has ended already.\n", f.plan.Name)
			return nil
		}
	}
	if err == nil {
		fmt.Fprintln(f.ErrOut, "Cancelling. The server starts no further change, waits for running calls and records their outcome.")
	}
	return err
}

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
