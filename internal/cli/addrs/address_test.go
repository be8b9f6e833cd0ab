package addrs

import (
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
)

func TestParseTarget(t *testing.T) {
	for in, want := range map[string]string{
		"sim_network.main":                     "sim_network.main",
		"sim-network/main":                     "sim_network.main",
		"sim-network.sim.hykube.io/main":       "sim_network.main",
		"sim_network.with.dots":                "sim_network.with.dots",
		`sim_network["with.dots"]`:             "sim_network.with.dots",
		"data.sim_image.base":                  "data.sim_image.base",
		"data-sim-image/base":                  "data.sim_image.base",
		"data-sim-image.sim.hykube.io/base":    "data.sim_image.base",
		"action.sim_reboot.now":                "action.sim_reboot.now",
		"ephemeral-sim-token/t":                "ephemeral.sim_token.t",
		"namespace.shared.sim_network.main":    "namespace.shared.sim_network.main",
		"namespace.shared.data.sim_image.base": "namespace.shared.data.sim_image.base",
	} {
		got, err := Parse(in)
		if err != nil || got.Full() != want {
			t.Errorf("%s: %q, %v", in, got.Full(), err)
		}
	}
	for _, bad := range []string{"", "x", "sim_network.", "/main", "a/b/c", "data.sim_image", "namespace.x"} {
		if got, err := Parse(bad); err == nil {
			t.Errorf("%q became %q", bad, got.Full())
		}
	}
}

// A flag that takes one mode says so for another.
func TestAddressesOfOneMode(t *testing.T) {
	for _, tc := range []struct {
		reason string
		in     string
		only   []v1alpha1.Mode
		want   string
	}{
		{"a data source can't be replaced", "data.sim_image.base", []v1alpha1.Mode{v1alpha1.ModeManaged}, "--x: data.sim_image.base is a data source, and only resources can be named here"},
		{"a resource can't be invoked", "sim_network.main", []v1alpha1.Mode{v1alpha1.ModeAction}, "--x: sim_network.main is a resource, and only actions can be named here"},
		{"a plan has one namespace", "namespace.a.sim_network.main", nil, "--x: a plan covers one namespace; choose it with -n"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			if _, err := ParseAll("--x", []string{tc.in}, tc.only...); err == nil || err.Error() != tc.want {
				t.Errorf("got %v", err)
			}
		})
	}
}
