// Command terraform-provider-shape is the provider that generates its schemas from seeds, see tests/conformance/shape.
// The name of the file selects the protocol: terraform-provider-shape5 speaks protocol 5, any other name protocol 6.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tfprotov5"
	"github.com/hashicorp/terraform-plugin-go/tfprotov5/tf5server"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"

	"github.com/hykube/hykube/tests/conformance/shape"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "terraform-provider-shape:", err)
		os.Exit(1)
	}
}

func run() error {
	options, err := shape.OwnOptions()
	if err != nil {
		return err
	}
	const address = "registry.terraform.io/hykube/"
	if strings.HasPrefix(filepath.Base(os.Args[0]), "terraform-provider-shape5") {
		return tf5server.Serve(address+"shape5", func() tfprotov5.ProviderServer { return shape.New5("shape5", options) })
	}
	return tf6server.Serve(address+"shape6", func() tfprotov6.ProviderServer { return shape.New6("shape6", options) })
}
