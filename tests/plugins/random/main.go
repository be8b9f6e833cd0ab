// Command random builds the real provider hashicorp/random as a plugin. Its release has no go.mod, so that `go install`
// would build it with a Terraform that no longer holds the packages that it needs. The go.mod here pins one that does.
package main

import (
	"github.com/hashicorp/terraform/plugin"
	"github.com/terraform-providers/terraform-provider-random/random"
)

func main() { plugin.Serve(&plugin.ServeOpts{ProviderFunc: random.Provider}) }
