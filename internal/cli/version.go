package cli

import (
	"context"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/hykube/hykube/internal/cli/printer"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/cli/version"
)

type versionOptions struct {
	*session.Session
	clientOnly bool
	output     string
}

func newVersion(s *session.Session) *cobra.Command {
	o := &versionOptions{Session: s}
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the versions of the plugin and the server",
		Example: `  kubectl hykube version`,
		Args:    cobra.NoArgs,
		RunE:    session.Run(o),
	}
	cmd.Flags().BoolVar(&o.clientOnly, "client", false, "Print only the plugin's version, without a server")
	printer.OutputFlag(cmd, &o.output, "Print", "json", "yaml")
	return cmd
}

func (o *versionOptions) Complete([]string) error {
	if o.clientOnly {
		return nil
	}
	return o.Connect()
}

func (o *versionOptions) Run(context.Context) error {
	out := map[string]any{"clientVersion": map[string]string{"gitVersion": version.Version,
		"goVersion": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH}}
	if o.output == "" {
		fmt.Fprintf(o.Out, "Client: %s (%s, %s/%s)\n", version.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	}
	if !o.clientOnly {
		v, err := o.Discovery.ServerVersion()
		if err != nil {
			return fmt.Errorf("ask server for its version: %w", o.Explain(err))
		}
		out["serverVersion"] = v
		if o.output == "" {
			fmt.Fprintf(o.Out, "Server: %s (%s, %s) at %s\n", v.GitVersion, v.GoVersion, v.Platform, o.Server())
		}
	}
	if o.output == "" {
		return nil
	}
	return printer.JSON(o.Terminal, out, o.output)
}
