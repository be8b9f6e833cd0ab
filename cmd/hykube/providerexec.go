package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/hykube/hykube/internal/provider/contain/entry"
)

// newProviderExecCommand shows where a provider's process begins. The server starts "hykube provider-exec ORDER", and the package
// contain takes such a process over before main; so only a person who types the command comes here.
func newProviderExecCommand() *cobra.Command {
	return &cobra.Command{
		Use:    entry.Command,
		Short:  "Become a provider in its sandbox; only the server uses it",
		Hidden: true,
		RunE: func(*cobra.Command, []string) error {
			return errors.New("use " + entry.Command + ": only the server starts it, with an order, on Linux")
		},
	}
}
