package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/hykube/hykube/internal/cli"
)

// newManCommand returns a command for releases: it is hidden, because users get the pages with the release.
func newManCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "man DIRECTORY",
		Short:  "Write the man pages of hykube and of the kubectl plugin",
		Args:   cobra.ExactArgs(1),
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			for _, c := range root.Commands() {
				if c.Name() == "kubectl" { // kubectl has pages of its own
					root.RemoveCommand(c)
				}
			}
			plugin := cli.NewCommand(genericiooptions.IOStreams{In: cmd.InOrStdin(), Out: io.Discard,
				ErrOut: io.Discard})
			for _, c := range []*cobra.Command{root, plugin} {
				generalize(c)
				options := doc.GenManTreeOptions{Header: &doc.GenManHeader{Section: "1", Source: "Hykube",
					Manual: "Hykube"}, Path: args[0], CommandSeparator: "-"}
				if err := doc.GenManTreeFromOpts(c, options); err != nil {
					return fmt.Errorf("write man pages: %w", err)
				}
			}
			return nil
		},
	}
}

// generalize replaces defaults in the help of a command that depend on the machine and on the user.
func generalize(cmd *cobra.Command) {
	cmd.DisableAutoGenTag = true // it has a date
	for _, flags := range []*pflag.FlagSet{cmd.LocalFlags(), cmd.PersistentFlags()} {
		if f := flags.Lookup("data-dir"); f != nil {
			f.DefValue = "~/.hykube"
		}
		if f := flags.Lookup("cache-dir"); f != nil {
			f.DefValue = "~/.kube/cache"
		}
	}
	for _, c := range cmd.Commands() {
		generalize(c)
	}
}
