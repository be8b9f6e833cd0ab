package main

import (
	"github.com/spf13/cobra"

	"github.com/hykube/hykube/server"
)

func newWorkerCommand() *cobra.Command {
	opts := server.NewOptions()
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Run a worker, which makes and applies plans for a server",
		Long: `Run a worker beside a server, on the same machine or another one. Both use one PostgreSQL or MySQL database and one
Temporal server. The worker installs the providers that the server has chosen, takes activities from Temporal, and calls
the providers. It serves nobody and needs no port. It waits until a server of the same version serves the database. A
worker and its server need the same root key, users and mirrors.`,
		Example: `  hykube worker --data-dir ./worker --datastore-endpoint-file database --encryption-key-file root.key \
    --temporal-address temporal.example.com:7233`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), opts) },
	}
	cmd.Flags().SortFlags = false
	opts.AddWorkerFlags(cmd.Flags())
	return cmd
}
