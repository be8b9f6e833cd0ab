// Command terraform-provider-sim is the Terraform provider of the simulated cloud. Terraform, OpenTofu and Hykube start
// it as a plugin. It connects tests/simprovider to the plugin protocol and decides nothing itself.
//
// The name of the file sets the version: terraform-provider-sim_v0.0.9 reports 0.0.9. So one build can serve as an
// older version, for stories about upgrades; see simprovider.New.
//
// The variable SIM_BATCH is the number of calls that it takes at once.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hykube/hykube/sdk/batch"
	"github.com/hykube/hykube/tests/simprovider"
)

// version is the version that the linker sets: -ldflags "-X main.version=1.2.3".
var version = "0.0.0-dev"

func main() {
	debug := flag.Bool("debug", false, "serve until interrupted, and print how Terraform can attach")
	flag.Parse()
	if _, named, ok := strings.Cut(filepath.Base(os.Args[0]), "_v"); ok {
		version = strings.TrimSuffix(named, ".exe")
	}
	if most, _ := strconv.Atoi(os.Getenv("SIM_BATCH")); most > 1 && !*debug {
		batch.Serve(simprovider.Address, providerserver.NewProtocol6(simprovider.New(version)()), simprovider.Limits(most)...)
		return
	}
	err := providerserver.Serve(context.Background(), simprovider.New(version), providerserver.ServeOpts{
		Address: simprovider.Address, ProtocolVersion: 6, Debug: *debug,
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "terraform-provider-sim:", err)
		os.Exit(1)
	}
}
