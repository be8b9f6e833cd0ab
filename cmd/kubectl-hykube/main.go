// Command kubectl-hykube is the kubectl plugin of Hykube: `kubectl hykube`. It only calls internal/cli with the streams
// and the arguments of the process.
package main

import (
	"context"
	"os"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/hykube/hykube/internal/cli"
	"github.com/hykube/hykube/internal/cli/exit"
)

func main() {
	cmd := cli.NewCommand(genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr})
	err := cmd.ExecuteContext(context.Background())
	exit.Print(os.Stderr, err)
	os.Exit(exit.Code(err))
}
