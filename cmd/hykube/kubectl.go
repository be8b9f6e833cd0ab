package main

import (
	"os"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/plugin"

	"github.com/hykube/hykube/internal/cli"
)

// newKubectlCommand is kubectl itself with Hykube's verbs built in, so that a machine needs nothing but this binary.
func newKubectlCommand() *cobra.Command {
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	verbs := cli.NewCommand(streams)
	options := cmd.KubectlOptions{Arguments: os.Args[1:], IOStreams: streams}
	if len(os.Args) < 3 || os.Args[2] != verbs.Name() {
		// Other plugins work as they do in kubectl; a kubectl-hykube on the PATH does not stand in for what is built in.
		options.PluginHandler = cmd.NewDefaultPluginHandler(plugin.ValidPluginFilenamePrefixes)
	}
	kubectl := cmd.NewDefaultKubectlCommandWithArgs(options)
	kubectl.Short = "Talk to a server with kubectl, which is built in"
	kubectl.AddCommand(verbs)
	return kubectl
}
