package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/hykube/hykube/internal/provider/contain/entry"
)

// newProviderExecCommand returns the command "provider-exec", which only returns an error. The server starts "hykube
// provider-exec ORDER" for each provider process, and package entry handles that before main.
func newProviderExecCommand() *cobra.Command {
	return &cobra.Command{
		Use:    entry.Command,
		Short:  "Become a provider in its sandbox; only the server uses it",
		Hidden: true,
		RunE: func(*cobra.Command, []string) error {
			return errors.New("use " + entry.Command + ": only the server starts this command, and only on Linux")
		},
	}
}
