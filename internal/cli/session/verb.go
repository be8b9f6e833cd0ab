package session

import (
	"context"
	"os"
	"os/signal"

	"github.com/spf13/cobra"

	"github.com/hykube/hykube/internal/cli/printer"
)

// verb is the interface of every command: an options struct that completes, validates and runs itself.
type verb interface {
	Complete(args []string) error
	Validate() error
	Run(ctx context.Context) error
}

// Run returns the RunE function of a verb.
func Run(v verb) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := checkSingleDash(cmd); err != nil {
			return err
		}
		if err := v.Complete(args); err != nil {
			return err
		}
		if err := printer.CheckOutput(cmd); err != nil {
			return err
		}
		if err := v.Validate(); err != nil {
			return err
		}
		ctx := cmd.Context()
		if ctx == nil {
			ctx = context.Background()
		}
		return v.Run(ctx)
	}
}

// OnInterrupt returns a channel that receives each Ctrl-C, which then does not end the process, until stop is called.
func OnInterrupt() (<-chan struct{}, func()) {
	signals, out, end := make(chan os.Signal, 2), make(chan struct{}), make(chan struct{})
	signal.Notify(signals, os.Interrupt)
	go func() {
		for {
			select {
			case <-signals:
				select {
				case out <- struct{}{}:
				case <-end:
					return
				}
			case <-end:
				return
			}
		}
	}()
	return out, func() { signal.Stop(signals); close(end) }
}
