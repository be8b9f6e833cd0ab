// Command local builds the real provider hashicorp/local as a plugin. `go install` cannot install its release,
// because the module declares another path than the one that it is published under. The go.mod here pins it instead.
package main

import (
	"github.com/hashicorp/terraform-plugin-sdk/plugin"
	"github.com/terraform-providers/terraform-provider-local/local"
)

func main() { plugin.Serve(&plugin.ServeOpts{ProviderFunc: local.Provider}) }
