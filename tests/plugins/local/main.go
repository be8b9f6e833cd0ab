// Command local builds the real provider hashicorp/local as a plugin. Its release cannot be installed with `go install`,
// because its module declares an older path than the one that it is published under. The go.mod here pins it instead.
package main

import (
	"github.com/hashicorp/terraform-plugin-sdk/plugin"
	"github.com/terraform-providers/terraform-provider-local/local"
)

func main() { plugin.Serve(&plugin.ServeOpts{ProviderFunc: local.Provider}) }
