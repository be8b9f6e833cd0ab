package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hykube/hykube/internal/suggest"
)

// What people who know Terraform type, and what it is here.

// terraformVerb is a hint for a verb of Terraform's that there is none of; empty when Terraform has no such verb.
func terraformVerb(name string) string {
	switch name {
	case "init":
		return "nothing has to be initialised: a Provider object installs its provider, see `kubectl explain provider.spec`"
	case "output":
		return "values are in the status of objects: kubectl get KIND NAME -o jsonpath={.status.attributes.ATTRIBUTE}"
	case "workspace":
		return "a namespace keeps one estate: kubectl create namespace NAME, and -n NAME"
	case "force-unlock":
		return "there is no lock to take away: plans of one namespace that touch the same resources take turns"
	case "login", "logout":
		return "the kubeconfig says who you are"
	case "providers":
		return "kubectl hykube provider list"
	}
	return ""
}

// terraformState is a hint for a verb of `terraform state`.
func terraformState(name string) string {
	switch name {
	case "pull":
		return "one resource's raw state is kubectl hykube state show KIND/NAME -o json"
	case "push":
		return "records are written by the server alone; kubectl hykube import takes over what exists"
	case "replace-provider":
		return "change spec.source of the Provider object"
	case "get", "describe":
		return "kubectl hykube state show KIND/NAME"
	case "remove", "delete", "forget":
		return "kubectl hykube state rm KIND/NAME"
	case "move", "rename":
		return "kubectl hykube state mv OLD NEW"
	}
	return ""
}

// terraformFlag is a hint for a flag of Terraform's that there is none of.
func terraformFlag(name string) string {
	switch name {
	case "out":
		return "the server keeps the plan, under the name that is printed: kubectl hykube approve PLAN applies it"
	case "var", "var-file":
		return "there are no variables: refer to a ConfigMap or a Secret, such as ${configmap.NAME.KEY}"
	case "lock", "lock-timeout":
		return "there is no lock: plans of one namespace that touch the same resources take turns"
	case "input":
		return "without a terminal nothing is asked; --auto-approve applies without asking"
	case "target":
		return "name resources behind the verb, such as TYPE.NAME"
	case "parallelism":
		return "limits.concurrency of a ProviderConfig is the bound"
	case "state", "state-out", "backup", "chdir":
		return "the server keeps the state; -n chooses the namespace"
	case "no-color":
		return "set NO_COLOR=1, or print into a pipe"
	case "json":
		return "write -o json"
	case "generate-config-out":
		return "kubectl hykube query --manifests and kubectl hykube import --generate-only write objects"
	case "force":
		return "write --auto-approve"
	}
	return ""
}

// flagError words the errors of flags: Terraform's have one dash.
func flagError(c *cobra.Command, err error) error {
	if args := c.Flags().Args(); len(args) > 0 && c.HasSubCommands() {
		// The flag is of a verb that there is none of: the verb is the mistake.
		return c.RunE(c, args)
	}
	hint := ""
	if missing, ok := errors.AsType[*pflag.NotExistError](err); ok {
		name := missing.GetSpecifiedName()
		if group := missing.GetSpecifiedShortnames(); group != "" {
			name = group
		}
		hint = flagHint(c, name)
	}
	if hint != "" {
		return fmt.Errorf("%s\nSee `%s --help`", hint, c.CommandPath())
	}
	return fmt.Errorf("%w\nSee `%s --help`", err, c.CommandPath())
}

// flagHint says what to write in place of a flag that was given with one dash, or that is Terraform's; empty when it is
// neither.
func flagHint(c *cobra.Command, given string) string {
	name, value, valued := strings.Cut(given, "=")
	if len(name) > 1 && c.Flags().Lookup(name) != nil {
		if valued {
			value = "=" + value
		}
		return fmt.Sprintf("-%s: flags with long names have two dashes: --%s%s", given, name, value)
	}
	if hint := terraformFlag(name); hint != "" {
		return fmt.Sprintf("there is no flag %q: %s", name, hint)
	}
	return ""
}

// misread finds long flags that were given with one dash and that began with a short one, such as -lock=false, which would
// be -l with the selector "ock=false".
func misread(c *cobra.Command) error {
	var found error
	c.Flags().Visit(func(f *pflag.Flag) {
		if f.Shorthand == "" || found != nil {
			return
		}
		values := []string{f.Value.String()}
		if s, ok := f.Value.(pflag.SliceValue); ok {
			values = s.GetSlice()
		}
		for _, v := range values {
			if hint := flagHint(c, f.Shorthand+v); hint != "" {
				found = fmt.Errorf("%s\nSee `%s --help`", hint, c.CommandPath())
			}
		}
	})
	return found
}

// noNames refuses arguments of a verb that takes none.
func noNames(hint string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := misread(cmd); err != nil || len(args) == 0 {
			return err
		}
		return fmt.Errorf("%s takes no names, and %q is one: %s\nSee `%s --help`", cmd.Name(), args[0], hint, cmd.CommandPath())
	}
}

// group is the RunE of a verb that only has verbs below it.
func group(hint func(string) string) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return unknownBelow(cmd, args[0], hint)
	}
}

// unknownBelow is the error of a verb that there is none of.
func unknownBelow(cmd *cobra.Command, name string, hint func(string) string) error {
	var names []string
	for _, c := range cmd.Commands() {
		if !c.Hidden {
			names = append(names, c.Name())
		}
	}
	slices.Sort(names)
	text := fmt.Sprintf("unknown verb %q", name)
	if h := hint(name); h != "" {
		text += ": " + h
	} else if near := suggest.Nearest(name, names); near != "" {
		text += fmt.Sprintf(": did you mean %q?", near)
	}
	return fmt.Errorf("%s\nSee `%s --help`; there are %s", text, cmd.CommandPath(), strings.Join(names, ", "))
}
