package session

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hykube/hykube/internal/suggest"
)

// terraformFlag holds hints for Terraform's flags that no verb has.
var terraformFlag = map[string]string{
	"out":                 "the server stores the plan and prints its name: kubectl hykube approve PLAN applies it",
	"var":                 "plan and apply have --var for the variables of -f DIR; a spec refers to a ConfigMap or a Secret, such as ${configmap.NAME.KEY}",
	"var-file":            "plan and apply have --var-file for the variables of -f DIR; a spec refers to a ConfigMap or a Secret, such as ${configmap.NAME.KEY}",
	"lock":                "plans need no state lock: apply waits while another plan changes the same resources",
	"lock-timeout":        "plans need no state lock: apply waits while another plan changes the same resources",
	"input":               "without a terminal the command does not ask; --auto-approve applies without asking",
	"target":              "name resources after the command, such as TYPE.NAME",
	"parallelism":         "set limits.concurrency of a ProviderConfig",
	"state":               "the server stores the state; -n chooses the namespace",
	"state-out":           "the server stores the state; -n chooses the namespace",
	"backup":              "the server stores the state; -n chooses the namespace",
	"chdir":               "the server stores the state; -n chooses the namespace",
	"no-color":            "set NO_COLOR=1, or pipe the output",
	"json":                "write -o json",
	"generate-config-out": "kubectl hykube query --manifests and kubectl hykube import --generate-only write objects",
	"force":               "write --auto-approve",
}

// FlagError returns the error for a flag, with a hint for Terraform's flags with one dash.
func FlagError(c *cobra.Command, err error) error {
	if args := c.Flags().Args(); len(args) > 0 && c.HasSubCommands() {
		// The verb does not exist, so report the verb instead of the flag.
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

// flagHint returns the hint for a flag with one dash, or one of Terraform's flags. It returns "" for others.
func flagHint(c *cobra.Command, given string) string {
	name, value, valued := strings.Cut(given, "=")
	if len(name) > 1 && c.Flags().Lookup(name) != nil {
		if valued {
			value = "=" + value
		}
		return fmt.Sprintf("-%s: flags with long names have two dashes: --%s%s", given, name, value)
	}
	if hint := terraformFlag[name]; hint != "" {
		return fmt.Sprintf("there is no flag %q: %s", name, hint)
	}
	return ""
}

// checkSingleDash finds long flags with one dash that parsed as a short flag. For example, -lock=false would be -l with
// the selector "ock=false".
func checkSingleDash(c *cobra.Command) error {
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

// NoNames returns an error for arguments of a verb without arguments.
func NoNames(hint string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := checkSingleDash(cmd); err != nil || len(args) == 0 {
			return err
		}
		return fmt.Errorf("%s takes no arguments such as %q: %s\nSee `%s --help`", cmd.Name(), args[0], hint,
			cmd.CommandPath())
	}
}

// Exactly returns an error, which quotes how the command is written, for another number of arguments.
func Exactly(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := checkSingleDash(cmd); err != nil || len(args) == n {
			return err
		}
		return fmt.Errorf("wrong number of arguments (%d): write %s\nSee `%s --help`",
			len(args), cmd.UseLine(), cmd.CommandPath())
	}
}

// Group returns the RunE function of a verb with only sub-commands. It reports unknown ones with a hint, if there is
// one.
func Group(hints map[string]string) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		var names []string
		for _, c := range cmd.Commands() {
			if !c.Hidden {
				names = append(names, c.Name())
			}
		}
		slices.Sort(names)
		text := fmt.Sprintf("unknown verb %q", args[0])
		if h := hints[args[0]]; h != "" {
			text += ": " + h
		} else if near := suggest.Nearest(args[0], names); near != "" {
			text += fmt.Sprintf(": did you mean %q?", near)
		}
		return fmt.Errorf("%s\nSee `%s --help`; there are %s", text, cmd.CommandPath(), strings.Join(names, ", "))
	}
}
