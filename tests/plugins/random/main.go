// Command random builds the real provider hashicorp/random as a plugin. Its release has no go.mod, so `go install`
// would build it with the newest Terraform, which lacks packages that it needs. The go.mod here pins a Terraform that
// has them.
package main

import (
	"github.com/hashicorp/terraform/plugin"
	"github.com/terraform-providers/terraform-provider-random/random"
)

func main() { plugin.Serve(&plugin.ServeOpts{ProviderFunc: random.Provider}) }
