package main

import (
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/spf13/cobra"

	"github.com/hykube/hykube/server"
)

// heapGrowth is the percentage by which the heap may grow between two garbage collections, unless GOGC is set. At 200,
// the collector runs half as often as at 100, the default of Go. The memory of an idle server does not depend on it.
const heapGrowth = 200

// memoryShare is the part of the memory of the container or the machine from which on the collector runs more often, unless
// GOMEMLIMIT is set. The rest is for the providers' processes. Otherwise a large heap could grow to three times the size that
// is in use, until the kernel ends the process.
const memoryShare = 0.5

// limitHeap applies heapGrowth and memoryShare.
func limitHeap(logger *slog.Logger) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(heapGrowth)
	}
	_, err := memlimit.Set(memlimit.WithRatio(memoryShare), memlimit.WithProvider(memlimit.ApplyFallback(memlimit.FromCgroup, memlimit.FromSystem)))
	if err != nil {
		logger.Warn("read the memory limit of the container or the machine; the heap has no limit", "error", err)
	}
}

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
		RunE: func(cmd *cobra.Command, _ []string) error {
			logger, err := server.NewLogger(os.Stderr, opts.LogLevel, opts.LogFormat)
			if err != nil {
				return err
			}
			limitHeap(logger)
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
			addThreads()
			return s.Run(cmd.Context())
		},
	}
	cmd.Flags().SortFlags = false
	opts.AddFlags(cmd.Flags())
	return cmd
}
