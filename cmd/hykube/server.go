package main

import (
	"context"
	"errors"
	"os"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/hykube/hykube/server"
)

// minThreads is the number of threads that may run Go code at once on a machine with fewer processors, unless
// GOMAXPROCS is set. The operating system runs an idle thread at once. Go lets a new task wait for up to 10 ms until a
// busy one pauses. So with as few threads as processors, a busy namespace delays the others more.
const minThreads = 4

// addThreads applies minThreads. Call it after New, because New sizes its slots by the number of processors.
func addThreads() {
	if os.Getenv("GOMAXPROCS") == "" && runtime.GOMAXPROCS(0) < minThreads {
		runtime.GOMAXPROCS(minThreads)
	}
}

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
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), opts) },
	}
	cmd.Flags().SortFlags = false
	opts.AddFlags(cmd.Flags())
	return cmd
}

// run runs a server, or a worker.
func run(ctx context.Context, opts *server.Options) error {
	logger, err := server.NewLogger(os.Stderr, opts.LogLevel, opts.LogFormat)
	if err != nil {
		return err
	}
	limitHeap(ctx, logger)
	server.BridgeLogs(logger)
	config, err := opts.Config(logger)
	if err != nil {
		return err
	}
	config.Wire = wire
	completed, err := config.Complete(ctx)
	if errors.Is(err, context.Canceled) { // stopped before it served, as a standby is
		return nil
	}
	if err != nil {
		return err
	}
	s, err := completed.New(ctx)
	if err != nil {
		return err
	}
	addThreads()
	return s.Run(ctx)
}
