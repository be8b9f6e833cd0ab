// Command terraform-provider-conform5 is the conformance suite's provider on protocol 5, see
// tests/conformance/conform5.
package main

import (
	"fmt"
	"os"

	"github.com/hashicorp/terraform-plugin-go/tfprotov5"
	"github.com/hashicorp/terraform-plugin-go/tfprotov5/tf5server"

	"github.com/hykube/hykube/tests/conformance/conform5"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "terraform-provider-conform5:", err)
		os.Exit(1)
	}
}

func run() error {
	server, err := conform5.New()
	if err != nil {
		return err
	}
	return tf5server.Serve(conform5.Address, func() tfprotov5.ProviderServer { return server })
}
