package kubectl

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// TestUsageOfTheVerbs checks that the usage lines of Hykube's verbs name each word of the command once.
func TestUsageOfTheVerbs(t *testing.T) {
	for _, args := range [][]string{{"kubectl", "hykube"}, {"kubectl", "hykube", "stack"}, {"kubectl", "hykube", "stack", "status"}} {
		cmd, _, err := NewRoot().Find(args)
		if err != nil {
			t.Fatal(err)
		}
		want := append([]string{"hykube"}, args...)
		if got := strings.Fields(cmd.UseLine()); len(got) < len(want) || !slices.Equal(got[:len(want)], want) || len(got) > len(want) && got[len(want)] == "kubectl" {
			t.Errorf("the usage of %s is %q", strings.Join(want, " "), got)
		}
	}
}

// TestInterruptEndsTheContext checks that an interrupt ends the context of kubectl's commands, and not that of Hykube's
// verbs, which ask what to do with a running plan.
func TestInterruptEndsTheContext(t *testing.T) {
	received := make(chan os.Signal, 1)
	signal.Notify(received, os.Interrupt) // otherwise it would end the test
	defer signal.Stop(received)
	args := os.Args
	defer func() { os.Args = args }()
	for line, ends := range map[string]bool{"hykube kubectl get": true, "hykube kubectl hykube approve plan-x": false, "hykube kubectl -n shop hykube approve plan-x": false} {
		root := &cobra.Command{Use: "hykube", SilenceUsage: true, SilenceErrors: true}
		kubectl := &cobra.Command{Use: "kubectl"}
		kubectl.PersistentFlags().StringP("namespace", "n", "", "")
		verbs := &cobra.Command{Use: "hykube"}
		root.AddCommand(kubectl)
		kubectl.AddCommand(verbs)
		var ctx context.Context
		wait := func(cmd *cobra.Command, _ []string) error {
			if ctx = cmd.Context(); ctx.Done() == nil {
				return nil // nothing ends it
			}
			if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
				return err
			}
			<-received
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(10 * time.Second):
				return errors.New("the interrupt did not end the context")
			}
		}
		kubectl.AddCommand(&cobra.Command{Use: "get", RunE: wait})
		verbs.AddCommand(&cobra.Command{Use: "approve", RunE: wait})
		os.Args = strings.Fields(line)
		if code := Run(root); code != 0 || (ctx.Done() != nil) != ends {
			t.Errorf("%s: code %d, an interrupt ends the context: %v", line, code, ctx.Done() != nil)
		}
	}
}
