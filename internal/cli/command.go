package cli

import (
	"context"
	"maps"
	"os"
	"os/signal"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// Version is the plugin's version, set by the build.
var Version = "dev"

// NewCommand returns the command `kubectl hykube`. It prints no errors: the caller must call PrintError and exit with
// ExitCode.
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	s := &session{terminal: newTerminal(streams), interrupts: onInterrupt}
	return newCommand(s)
}

func newCommand(s *session) *cobra.Command {
	hints := maps.Clone(terraformVerb)
	for _, name := range []string{"delete", "describe", "edit", "wait", "explain", "diff", "patch"} {
		hints[name] = "kubectl does that itself: kubectl " + name
	}
	cmd := &cobra.Command{
		Use:   "hykube",
		Short: "Plan and apply infrastructure on a Hykube server",
		Long: `Plan and apply infrastructure on a Hykube server.

Use kubectl to write, read and delete objects. Use these verbs to plan and apply the changes that the objects need:

  write   kubectl apply -f DIR, or kubectl hykube apply -f DIR to write, plan and apply in one command
  plan    kubectl hykube plan
  apply   kubectl hykube approve PLAN

Exit codes: 0 success, or no changes are needed; 1 error; 2 changes wait for approval (with --detailed-exitcode);
3 forbidden by a missing right, a policy or preventDestroy; 4 stale: something changed after planning.`,
		Example: `  # record, plan, ask, apply
  kubectl hykube apply -f examples/first

  # see what would happen to the whole namespace
  kubectl hykube plan -n prod

  # everything about a plan, then approve it
  kubectl hykube show plan-x7k2d
  kubectl hykube approve plan-x7k2d`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE:          group(hints),
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl hykube"},
	}
	cmd.SetIn(s.In)
	cmd.SetOut(s.Out)
	cmd.SetErr(s.ErrOut)
	s.flags.add(cmd.PersistentFlags())
	cmd.AddGroup(&cobra.Group{ID: "plan", Title: "Plan and apply:"}, &cobra.Group{ID: "existing", Title: "Existing resources:"}, &cobra.Group{ID: "inspect", Title: "Inspect:"}, &cobra.Group{ID: "other", Title: "Other:"})
	add := func(group string, cmds ...*cobra.Command) {
		for _, c := range cmds {
			c.GroupID = group
			silence(c)
			cmd.AddCommand(c)
		}
	}
	cmd.SetFlagErrorFunc(flagError)
	cmd.SetUsageTemplate(usage(cmd.UsageTemplate()))
	add("plan", newValidate(s), newApply(s), newPlan(s), newShow(s), newApprove(s), newDiscard(s), newCancel(s), newDestroy(s), newRefresh(s))
	add("existing", newImport(s), newQuery(s), newState(s), newModule(s), newResolve(s), newTaint(s), newUntaint(s), newUndelete(s), newVerify(s), newThaw(s))
	add("inspect", newStatus(s), newGet(s), newSearch(s), newInstances(s), newStack(s), newDrift(s), newProvider(s), newGraph(s), newConsole(s), newHistory(s), newWorkflows(s), newPolicy(s), newUI(s))
	add("other", newVersion(s), newCompletion(s))
	cmd.SetHelpCommandGroupID("other")
	cmd.CompletionOptions.DisableDefaultCmd = true
	_ = cmd.RegisterFlagCompletionFunc("namespace", completeNamespaces(s))
	return cmd
}

// usage shortens cobra's template: only the help of the root lists kubectl's two dozen flags.
func usage(template string) string {
	const from, to = "{{if .HasAvailableInheritedFlags}}", "{{if .HasHelpSubCommands}}"
	i, j := strings.Index(template, from), strings.Index(template, to)
	if i < 0 || j < i {
		return template
	}
	return template[:i] + "{{if .HasAvailableInheritedFlags}}\n\nAnd kubectl's own flags, such as -n, --context and --kubeconfig: see \"kubectl hykube --help\".{{end}}" + template[j:]
}

// silence leaves the printing of errors to PrintError, even if the commands are below another root, such as kubectl's.
func silence(c *cobra.Command) {
	c.SilenceErrors, c.SilenceUsage = true, true
	c.SetFlagErrorFunc(flagError)
	for _, sub := range c.Commands() {
		silence(sub)
	}
}

// verb is the interface of every command: an options struct that completes, validates and runs itself.
type verb interface {
	Complete(args []string) error
	Validate() error
	Run(ctx context.Context) error
}

// run returns the RunE function of a verb.
func run(v verb) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := checkSingleDash(cmd); err != nil {
			return err
		}
		if err := v.Complete(args); err != nil {
			return err
		}
		if err := checkOutput(cmd); err != nil {
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

// onInterrupt returns a channel that receives each Ctrl-C, which then does not end the process, until stop is called.
func onInterrupt() (<-chan struct{}, func()) {
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
