package cli

import (
	"context"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
)

type versionOptions struct {
	*session
	clientOnly bool
	output     string
}

func newVersion(s *session) *cobra.Command {
	o := &versionOptions{session: s}
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the versions of the plugin and the server",
		Example: `  kubectl hykube version`,
		Args:    cobra.NoArgs,
		RunE:    run(o),
	}
	cmd.Flags().BoolVar(&o.clientOnly, "client", false, "Print only the plugin's version, without a server")
	outputFlag(cmd, &o.output, "Print", "json", "yaml")
	return cmd
}

func (o *versionOptions) Complete([]string) error {
	if o.clientOnly {
		return nil
	}
	return o.connect()
}

func (o *versionOptions) Run(context.Context) error {
	out := map[string]any{"clientVersion": map[string]string{"gitVersion": Version, "goVersion": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH}}
	if o.output == "" {
		fmt.Fprintf(o.Out, "Client: %s (%s, %s/%s)\n", Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	}
	if !o.clientOnly {
		v, err := o.disco.ServerVersion()
		if err != nil {
			return fmt.Errorf("ask server for its version: %w", explain(err, o.server()))
		}
		out["serverVersion"] = v
		if o.output == "" {
			fmt.Fprintf(o.Out, "Server: %s (%s, %s) at %s\n", v.GitVersion, v.GoVersion, v.Platform, o.server())
		}
	}
	if o.output == "" {
		return nil
	}
	return printJSON(o.terminal, out, o.output)
}
