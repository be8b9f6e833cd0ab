package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/hykube/hykube/server"
	"github.com/hykube/hykube/server/access"
)

// maxProbe is the maximum size of a response to a probe in bytes. A response lists some 50 checks.
const maxProbe = 64 << 10

type probeOptions struct {
	dataDir    string
	kubeconfig string
	server     string
	timeout    time.Duration
}

func newProbeCommand() *cobra.Command {
	o := &probeOptions{dataDir: server.DefaultDataDir(), timeout: 5 * time.Second}
	cmd := &cobra.Command{
		Use:   "probe livez|readyz",
		Short: "Check whether a server is alive or ready",
		Long: `Check whether a server is alive or ready, as Kubernetes' probes do. The server refuses anonymous requests, so that a probe
needs credentials: this command uses admin.kubeconfig of the data directory, or --kubeconfig.

livez   The server answers, and its watches deliver. Restart a server that is not alive.
readyz  The server accepts requests: the database and Temporal answer, and the kinds of all Providers are served.

The command prints ok and exits with 0, or prints the checks that failed and exits with 1.`,
		Example: `  # in the container of the server
  hykube probe readyz --data-dir /var/lib/hykube`,
		ValidArgs: []string{"livez", "readyz"},
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.probe(cmd.Context(), args[0]); err != nil {
				return fmt.Errorf("probe %s: %w", args[0], err)
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "ok")
			return err
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVarP(&o.dataDir, "data-dir", "d", o.dataDir, "Data directory of the server, for its admin.kubeconfig.")
	fs.StringVar(&o.kubeconfig, "kubeconfig", "",
		"Kubeconfig of any user, in place of admin.kubeconfig of the data directory.")
	fs.StringVar(&o.server, "server", "", "Address of the server, in place of that of the kubeconfig.")
	fs.DurationVar(&o.timeout, "timeout", o.timeout, "Maximum time for the answer.")
	return cmd
}

// probe returns an error if the server does not answer in time, or if a check fails.
func (o *probeOptions) probe(ctx context.Context, check string) error {
	config, err := clientConfig(o.kubeconfig, o.dataDir)
	if err != nil {
		return err
	}
	if o.server != "" {
		config.Host = o.server
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, o.timeout, fmt.Errorf("no answer within %s", o.timeout))
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(config.Host, "/")+"/"+check, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		return err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxProbe))
	if err != nil {
		return err
	}
	if response.StatusCode == http.StatusOK {
		return nil
	}
	return fmt.Errorf("the server answers %s: %s", response.Status, failed(string(body)))
}

// failed returns the lines of a response about failed checks, or the whole response if it has none.
func failed(body string) string {
	lines := slices.DeleteFunc(strings.Split(body, "\n"),
		func(line string) bool { return !strings.HasPrefix(line, "[-]") })
	if len(lines) == 0 {
		return strings.TrimSpace(body)
	}
	return strings.Join(lines, ", ")
}

// clientConfig reads a kubeconfig; an empty path means admin.kubeconfig of the data directory.
func clientConfig(kubeconfig, dataDir string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", cmp.Or(kubeconfig, access.AdminPath(dataDir)))
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w; name the data directory with --data-dir, or a kubeconfig with --kubeconfig", err)
	}
	return config, nil
}
