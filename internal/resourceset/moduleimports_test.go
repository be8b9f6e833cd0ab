package resourceset

import (
	"strings"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
)

const importing = `
locals { ids = { a = "id-a", b = "id-b" } }
resource "test_thing" "one" {}
resource "test_thing" "many" { for_each = local.ids }
`

// TestImportBlocks expects the instance of each import block to have its ID in lifecycle.import, and another content than without.
func TestImportBlocks(t *testing.T) {
	without := expandNet(t, importing, nil, nil)
	with := expandNet(t, importing+`
import {
  to = test_thing.one
  id = "id-${1 + 1}"
}
import {
  for_each = local.ids
  to       = test_thing.many[each.key]
  identity = { name = each.value }
}`, nil, nil)
	if with.Problem != "" {
		t.Fatal(with.Problem)
	}
	one := blockOf(with, "one").Object(v1alpha1.InstanceKey{})
	if id, _ := one.Object["lifecycle"].(map[string]any)["import"].(map[string]any)["id"].(string); id != "id-2" {
		t.Errorf("the ID is %q", id)
	}
	many := blockOf(with, "many").Object(v1alpha1.InstanceKey{Named: true, Name: "b"})
	identity, _ := many.Object["lifecycle"].(map[string]any)["import"].(map[string]any)["identity"].(map[string]any)
	if identity["name"] != "id-b" {
		t.Errorf("the identity is %v", identity)
	}
	if Content(one) == Content(blockOf(without, "one").Object(v1alpha1.InstanceKey{})) {
		t.Error("an import block does not change the content of its instance, to which an approval is bound")
	}
}

// TestImportBlocksThatCannotBeCarriedOut expects a reason with the position for each.
func TestImportBlocksThatCannotBeCarriedOut(t *testing.T) {
	for problem, block := range map[string]string{
		"main.tf:5:1: Configuration for import target does not exist: The module has no module.net.test_thing.gone": `to = test_thing.gone
id = "x"`,
		"The ID is empty": `to = test_thing.one
id = ""`,
		"The ID or identity is null": `to = test_thing.one
identity = null`,
		"comes from a sensitive value": `to = test_thing.one
id = sensitive("x")`,
		"known only after apply": `to = test_thing.one
id = test_thing.many["a"].id`,
		"Another import block has the target": `to = test_thing.one
id = "x"
}
import {
to = test_thing.one
id = "y"`,
		"The resource has a block, whose argument provider says": `to = test_thing.one
id = "x"
provider = test`,
	} {
		t.Run(problem, func(t *testing.T) {
			m := expandNet(t, importing+"import {\n"+block+"\n}", nil, nil)
			if !strings.Contains(m.Problem, problem) || len(m.Sets) > 0 {
				t.Errorf("%d blocks, and the problem %q", len(m.Sets), m.Problem)
			}
		})
	}
}
