// Package kubectl is the kubectl inside hykube, with Hykube's verbs built in, so that a machine needs only one binary.
package kubectl

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/hykube/hykube/internal/cli/exit"
)

// NewRoot returns the command hykube with the subcommand kubectl. cmd/hykube adds the other subcommands.
func NewRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "hykube",
		Short: "Plan and apply infrastructure of any size through a Kubernetes API",
		Long: `Hykube serves the resource types of Terraform providers as a Kubernetes API. It plans each change as Terraform does, and
applies an approved plan as a durable workflow.

Start "hykube server"; then, in another terminal:

  export KUBECONFIG=~/.hykube/admin.kubeconfig
  hykube kubectl get providers`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w; see %q", err, cmd.CommandPath()+" --help")
	})
	root.AddCommand(newCommand())
	return root
}

// Run runs the command of NewRoot with the arguments of the process, and returns the exit code: 0 after success, 1
// after an error, and the codes that a verb of kubectl documents. An interrupt ends the context of the command.
// Hykube's verbs handle interrupts themselves: a canceled context would fail their requests, and hide that the server
// continues a plan.
func Run(root *cobra.Command) int {
	ctx := context.Background()
	if found, _, err := root.Find(os.Args[1:]); err != nil || !isVerb(found) {
		var stop context.CancelFunc
		ctx, stop = signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
		defer stop()
	}
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	if isVerb(cmd) {
		exit.Print(os.Stderr, err)
		return exit.Code(err)
	}
	fmt.Fprintln(os.Stderr, "hykube: "+oneLine(err))
	if code, ok := errors.AsType[interface {
		error
		ExitStatus() int
	}](err); ok {
		return code.ExitStatus()
	}
	return 1
}

// isVerb reports whether a command is below `hykube kubectl hykube`. Its errors and exit codes are those of the plugin.
func isVerb(cmd *cobra.Command) bool {
	for ; cmd != nil; cmd = cmd.Parent() {
		if cmd.Name() == "hykube" {
			return cmd.HasParent()
		}
	}
	return false
}

// oneLine joins the lines of an error, because log readers process stderr by line.
func oneLine(err error) string {
	lines := strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' })
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	return strings.Join(lines, "; ")
}
