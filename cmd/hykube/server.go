package main

import (
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/hykube/hykube/server"
)

// heapGrowth is the percentage by which the heap may grow between two garbage collections, unless GOGC is set. At 200,
// the collector runs half as often as at 100, the default of Go. An idle server stays as large as with that.
const heapGrowth = 200

func newServerCommand() *cobra.Command {
	opts := server.NewOptions()
	cmd := &cobra.Command{
		Use:   "server",
		Short: "Run the API server, with its database and Temporal",
		Long: `Run the API server. One process contains the database (SQLite), Temporal and its Web UI. At the first start the
server creates its certificates and writes admin.kubeconfig into the data directory.`,
		Example: `  # Serve on https://127.0.0.1:6443 and keep everything below ~/.hykube
  hykube server

  # Serve on a free port, and search a local mirror first for providers
  hykube server --data-dir ./data --secure-port 0 --provider-mirror ./mirror`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if os.Getenv("GOGC") == "" {
				debug.SetGCPercent(heapGrowth)
			}
			logger, err := server.NewLogger(os.Stderr, opts.LogLevel, opts.LogFormat)
			if err != nil {
				return err
			}
			server.BridgeLogs(logger)
			config, err := opts.Config(logger)
			if err != nil {
				return err
			}
			config.Wire = wire
			completed, err := config.Complete(cmd.Context())
			if err != nil {
				return err
			}
			s, err := completed.New(cmd.Context())
			if err != nil {
				return err
			}
			return s.Run(cmd.Context())
		},
	}
	cmd.Flags().SortFlags = false
	opts.AddFlags(cmd.Flags())
	return cmd
}
