package registry

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// TestAddressesOfAPlan validates lists of a Plan's spec.
func TestAddressesOfAPlan(t *testing.T) {
	many := make([]string, maxTargets+1)
	for i := range many {
		many[i] = fmt.Sprintf("sim_network.n%d", i)
	}
	for name, tc := range map[string]struct {
		addresses []string
		mode      v1alpha1.Mode
		want      string
	}{
		"valid":                 {addresses: []string{"sim_network.main", "sim-subnet/a", "data.sim_image.x"}},
		"as many as possible":   {addresses: many[1:]},
		"too many":              {addresses: many, want: "spec.targets: Too many: 10001: must have at most 10000 items. Select more of them with spec.selector (-l)"},
		"no address":            {addresses: []string{"main"}, want: `spec.targets[0]: Invalid value: "main": must be the address of a resource`},
		"twice":                 {addresses: []string{"sim_network.a", "sim-network/a"}, want: `spec.targets[1]: Duplicate value: "sim-network/a"`},
		"a Secret":              {addresses: []string{"secret.a"}, want: "plans read ConfigMaps and Secrets, and never change them"},
		"another namespace":     {addresses: []string{"namespace.ops.sim_network.a"}, want: "write it without the namespace"},
		"no action":             {addresses: []string{"sim_network.a"}, mode: v1alpha1.ModeAction, want: "a plan runs only actions"},
		"an action":             {addresses: []string{"action.sim_reboot.now"}, mode: v1alpha1.ModeAction},
		"a data source":         {addresses: []string{"data.sim_image.x"}, mode: v1alpha1.ModeManaged, want: "only managed resources can be replaced"},
		"no address, of action": {addresses: []string{"now"}, mode: v1alpha1.ModeAction, want: "must be the address of an action"},
	} {
		err := validateAddresses(tc.addresses, field.NewPath("spec", "targets"), tc.mode).ToAggregate()
		if (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}
