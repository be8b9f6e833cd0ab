package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/hykube/hykube/server"
)

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "hykube %s (%s, %s/%s)\n", server.Version, runtime.Version(),
				runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
