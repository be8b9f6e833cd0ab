package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hykube/hykube/server"
)

// rebuildPoll is the time between two requests for the result of a rebuild.
const rebuildPoll = time.Second

func newRebuildIndexCommand() *cobra.Command {
	o := &administratorOptions{}
	cmd := &cobra.Command{
		Use:   "rebuild-index",
		Short: "Build the index of a running server again, and compare",
		Long: `Build the index of a running server again from all objects and records, and compare the result with the index that
the server had. Plans wait meanwhile: about ten seconds for 100,000 resources. The server also removes its snapshot of
the index, and saves another one.

The command exits with 1 if the index was wrong, and prints which entries differed. The server uses the new index then;
please report the difference. The command does not compare namespaces in which something changed meanwhile.

The command needs the rights of an administrator: it uses admin.kubeconfig of the data directory, or --kubeconfig.`,
		Example: `  # Compare the index with the database
  hykube rebuild-index`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := rebuildIndex(cmd.Context(), o, cmd.OutOrStdout()); err != nil {
				return fmt.Errorf("rebuild index: %w", err)
			}
			return nil
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func rebuildIndex(ctx context.Context, o *administratorOptions, out io.Writer) error {
	var state server.IndexRebuild
	if err := o.request(ctx, http.MethodPost, server.RebuildIndexPath, &state); err != nil {
		return err
	}
	for state.Running {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(rebuildPoll):
		}
		state = server.IndexRebuild{}
		if err := o.request(ctx, http.MethodGet, server.RebuildIndexPath, &state); err != nil {
			return err
		}
	}
	if state.Error != "" {
		return errors.New(state.Error)
	}
	fmt.Fprintf(out, "The server read %d objects again.\n", state.Objects)
	if len(state.Skipped) > 0 {
		fmt.Fprintf(out, "Not compared, because something changed in them meanwhile: the namespaces %s.\n",
			strings.Join(state.Skipped, ", "))
	}
	for _, d := range state.Differences {
		fmt.Fprintln(out, d)
	}
	if state.Different > 0 {
		return fmt.Errorf("%d entries of the index were wrong, and are right now; report this with the server's log",
			state.Different)
	}
	fmt.Fprintln(out, "The index had the same content.")
	return nil
}
