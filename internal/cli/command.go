package cli

import (
	"maps"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/hykube/hykube/internal/cli/apply"
	"github.com/hykube/hykube/internal/cli/console"
	"github.com/hykube/hykube/internal/cli/graph"
	"github.com/hykube/hykube/internal/cli/history"
	"github.com/hykube/hykube/internal/cli/imports"
	"github.com/hykube/hykube/internal/cli/module"
	"github.com/hykube/hykube/internal/cli/namespace"
	"github.com/hykube/hykube/internal/cli/plan"
	"github.com/hykube/hykube/internal/cli/policy"
	"github.com/hykube/hykube/internal/cli/provider"
	"github.com/hykube/hykube/internal/cli/query"
	"github.com/hykube/hykube/internal/cli/resolve"
	"github.com/hykube/hykube/internal/cli/resources"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/cli/stack"
	"github.com/hykube/hykube/internal/cli/state"
	"github.com/hykube/hykube/internal/cli/status"
	"github.com/hykube/hykube/internal/cli/terminal"
	"github.com/hykube/hykube/internal/cli/undelete"
	"github.com/hykube/hykube/internal/cli/validate"
	"github.com/hykube/hykube/internal/cli/verify"
	"github.com/hykube/hykube/internal/cli/workflow"
)

// NewCommand returns the command `kubectl hykube`. It prints no errors: the caller must call exit.Print and exit
// with exit.Code.
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	s := &session.Session{Terminal: terminal.New(streams), Interrupts: session.OnInterrupt}
	return Command(s)
}

// Command returns the command on a session, which tests make themselves.
func Command(s *session.Session) *cobra.Command {
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
		RunE:          session.Group(hints),
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl hykube"},
	}
	cmd.SetIn(s.In)
	cmd.SetOut(s.Out)
	cmd.SetErr(s.ErrOut)
	s.Flags.Add(cmd.PersistentFlags())
	cmd.AddGroup(&cobra.Group{ID: "plan", Title: "Plan and apply:"},
		&cobra.Group{ID: "existing", Title: "Existing resources:"}, &cobra.Group{ID: "inspect", Title: "Inspect:"},
		&cobra.Group{ID: "other", Title: "Other:"})
	add := func(group string, cmds ...*cobra.Command) {
		for _, c := range cmds {
			c.GroupID = group
			silence(c)
			cmd.AddCommand(c)
		}
	}
	cmd.SetFlagErrorFunc(session.FlagError)
	cmd.SetUsageTemplate(usage(cmd.UsageTemplate()))
	add("plan", validate.New(s), apply.New(s), plan.New(s), plan.NewShow(s), plan.NewApprove(s), plan.NewDiscard(s),
		plan.NewCancel(s), apply.NewDestroy(s), apply.NewRefresh(s))
	add("existing", imports.New(s), query.New(s), state.New(s), module.New(s), resolve.New(s), state.NewTaint(s),
		state.NewUntaint(s), undelete.New(s), verify.New(s), namespace.NewThaw(s))
	add("inspect", status.New(s), resources.NewGet(s), resources.NewSearch(s), resources.NewInstances(s), stack.New(s),
		stack.NewDrift(s), provider.New(s), graph.New(s), console.New(s), history.New(s), workflow.NewWorkflows(s),
		policy.New(s), workflow.NewUI(s))
	add("other", newVersion(s), newCompletion(s))
	cmd.SetHelpCommandGroupID("other")
	cmd.CompletionOptions.DisableDefaultCmd = true
	_ = cmd.RegisterFlagCompletionFunc("namespace", session.CompleteNamespaces(s))
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

// silence leaves the printing of errors to exit.Print, even if the commands are below another root, such as kubectl's.
func silence(c *cobra.Command) {
	c.SilenceErrors, c.SilenceUsage = true, true
	c.SetFlagErrorFunc(session.FlagError)
	for _, sub := range c.Commands() {
		silence(sub)
	}
}

// Hints for users who type Terraform's commands.

// terraformVerb holds hints for Terraform's verbs that this command lacks.
var terraformVerb = map[string]string{
	"init":         "there is no init: a Provider object installs its provider, see `kubectl explain provider.spec`",
	"output":       "values are in the status of objects: kubectl get KIND NAME -o jsonpath={.status.attributes.ATTRIBUTE}",
	"workspace":    "use a namespace for each workspace: kubectl create namespace NAME, then -n NAME",
	"force-unlock": "plans need no state lock: apply waits while another plan changes the same resources",
	"login":        "the kubeconfig has your credentials",
	"logout":       "the kubeconfig has your credentials",
	"providers":    "kubectl hykube provider list",
}
