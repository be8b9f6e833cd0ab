// Command simcloud runs a simulated cloud, and controls a running one: drift, faults, latency, quotas, and the log of
// its calls. It connects tests/simcloud to a command line and decides nothing itself.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newCommand(os.Getenv, os.Stdout, os.Stderr).ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "simcloud:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop was called
	}
}
