package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// interrupted asks after Ctrl-C whether to cancel the plan or only to stop watching it.
func (f *follower) interrupted(ctx context.Context, again <-chan struct{}) error {
	if f.block != nil {
		f.block.clear()
	}
	if !f.ask {
		return errDetached
	}
	for {
		fmt.Fprintf(f.ErrOut, "\nThe server is applying plan %q. Cancel the plan (c), detach and leave it running (d), or continue to watch (Enter)? ", f.plan.Name)
		answer := make(chan string, 1)
		go func() {
			s, err := f.line()
			if err != nil && err != io.EOF {
				s = "d"
			}
			answer <- s
		}()
		select {
		case s := <-answer:
			switch strings.ToLower(strings.TrimSpace(s)) {
			case "c", "cancel":
				return f.stopPlan(ctx)
			case "d", "detach":
				return errDetached
			case "":
				return nil
			}
		case <-again:
			return errDetached
		}
	}
}

// stopPlan cancels the plan. If the plan has already ended, the caller prints its result.
func (f *follower) stopPlan(ctx context.Context) error {
	_, err := f.cancelPlan(ctx, f.plan)
	if apierrors.IsConflict(err) {
		if now, readErr := f.getPlan(ctx, f.plan.Namespace, f.plan.Name); readErr == nil && now.UID == f.plan.UID && now.Ended() {
			fmt.Fprintf(f.ErrOut, "Plan %q has ended already.\n", f.plan.Name)
			return nil
		}
	}
	if err == nil {
		fmt.Fprintln(f.ErrOut, "Cancelling. The server starts no further change, waits for running calls and records their outcome.")
	}
	return err
}
