// Command hykube-kubectl is `hykube kubectl` without the server. Stories call it thousands of times, and it starts in a
// fraction of the time.
package main

import (
	"os"
	"slices"

	"github.com/hykube/hykube/internal/kubectl"
)

func main() {
	os.Args = slices.Insert(os.Args, 1, "kubectl")
	os.Exit(kubectl.Run(kubectl.NewRoot()))
}
