package terraformjson

import (
	"encoding/json"
	"testing"

	tfjson "github.com/hashicorp/terraform-json"
)

// TestResourcesOfModulesAreInChildModules expects the values of a plan in the tree of modules, as Terraform writes them.
func TestResourcesOfModulesAreInChildModules(t *testing.T) {
	root := &tfjson.StateModule{}
	for _, address := range []string{`module.shop.module.net["eu"].sim_subnet.a[1]`, "sim_network.main", "module.shop.sim_network.main", `module.shop.module.net["eu"].sim_subnet.a[0]`} {
		root.Resources = append(root.Resources, &tfjson.StateResource{Address: address})
	}
	sortResources(root)
	shop := root.ChildModules[0]
	net := shop.ChildModules[0]
	if len(root.Resources) != 1 || shop.Address != "module.shop" || len(shop.Resources) != 1 || net.Address != `module.shop.module.net["eu"]` ||
		len(net.Resources) != 2 || net.Resources[0].Address != `module.shop.module.net["eu"].sim_subnet.a[0]` {
		text, err := json.Marshal(root)
		t.Errorf("%s %v", text, err)
	}
}
