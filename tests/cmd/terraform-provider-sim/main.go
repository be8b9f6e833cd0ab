// Command terraform-provider-sim is the Terraform provider of the simulated cloud. Terraform, OpenTofu and Hykube start
// it as a plugin. It wires tests/simprovider to the plugin protocol and decides nothing itself.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hykube/hykube/tests/simprovider"
)

// version is set by the linker: -ldflags "-X main.version=1.2.3".
var version = "0.0.0-dev"

func main() {
	debug := flag.Bool("debug", false, "serve until interrupted, and print how Terraform can attach")
	flag.Parse()
	err := providerserver.Serve(context.Background(), simprovider.New(version), providerserver.ServeOpts{
		Address: simprovider.Address, ProtocolVersion: 6, Debug: *debug,
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "terraform-provider-sim:", err)
		os.Exit(1)
	}
}
