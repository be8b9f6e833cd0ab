package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/hykube/hykube/tests/simcloud"
	"github.com/spf13/cobra"
)

// stopTimeout is the time that running calls have to finish after SIGTERM.
const stopTimeout = 5 * time.Second

func serveCommand(o *options, errOut io.Writer) *cobra.Command {
	var (
		listen, addressFile, stateFile string
		callLog                        int
		verbose                        bool
		latency, jitter                time.Duration
	)
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run a cloud until SIGTERM or Ctrl-C",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			level := slog.LevelInfo
			if verbose {
				level = slog.LevelDebug
			}
			config := simcloud.Config{
				Token: o.token, StateFile: stateFile, CallLog: callLog,
				Logger: slog.New(slog.NewTextHandler(errOut, &slog.HandlerOptions{Level: level})),
			}
			config.Settings.SetLatency(simcloud.Latency{Delay: simcloud.Duration(latency), Jitter: simcloud.Duration(jitter)})
			cloud, err := simcloud.Start(listen, config)
			if err != nil {
				return err
			}
			if addressFile != "" {
				if err := writeFile(addressFile, cloud.Address+"\n"); err != nil {
					return err
				}
			}
			fmt.Fprintln(o.out, cloud.Address)
			select {
			case err := <-cloud.Failed():
				return err
			case <-cmd.Context().Done():
			}
			ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), stopTimeout)
			defer cancel()
			return cloud.Stop(ctx)
		},
	}
	f := c.Flags()
	f.StringVar(&listen, "listen", "127.0.0.1:0", "address to listen on; port 0 takes a free one")
	f.StringVar(&addressFile, "address-file", "", "file to write the address to once it is served")
	f.StringVar(&stateFile, "state-file", "", "file that keeps what exists (default: memory only)")
	f.IntVar(&callLog, "call-log", 0, "how many calls the log holds (default: 200000)")
	f.DurationVar(&latency, "latency", 0, "delay of every call")
	f.DurationVar(&jitter, "jitter", 0, "random part added to the delay")
	f.BoolVarP(&verbose, "verbose", "v", false, "log every call")
	return c
}

// writeFile replaces a file as a whole, so that a program that polls for it never reads a part of the address.
func writeFile(path, content string) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("write address file: %w", err)
	}
	_, err = f.WriteString(content)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("write address file: %w", err)
	}
	return nil
}
