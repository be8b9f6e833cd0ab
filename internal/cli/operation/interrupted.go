package operation

import (
	"context"
	"fmt"
	"io"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/hykube/hykube/internal/cli/planapi"
	"github.com/hykube/hykube/internal/cli/session"
)

// HoldInterrupts keeps each Ctrl-C for the next watch of a plan, so that none ends the command between an approval and its
// watch. The caller must call release.
func HoldInterrupts(s *session.Session) (release func()) {
	own := s.Interrupts
	pressed, done := own()
	s.Interrupts = func() (<-chan struct{}, func()) { return pressed, func() {} }
	return func() {
		s.Interrupts = own
		done()
	}
}

// interrupted asks after Ctrl-C whether to cancel the plan or only to stop watching it. The question ends with the plan.
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
		if now, readErr := planapi.Get(ctx, f.Session, f.plan.Namespace, f.plan.Name); readErr == nil && now.UID == f.plan.UID && now.Ended() {
			fmt.Fprintf(f.ErrOut, "Plan %q has ended already.\n", f.plan.Name)
			return nil
		}
	}
	if err == nil {
		fmt.Fprintln(f.ErrOut, "Cancelling. The server starts no further change, waits for running calls and records their outcome.")
	}
	return err
}
