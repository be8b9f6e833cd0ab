package resolve

import (
	"strings"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/addrs"
)

// TestWhatForgetCannotMark has an instance of a ResourceSet and two resources of a Module.
func TestWhatForgetCannotMark(t *testing.T) {
	target := func(name string) addrs.Target {
		return addrs.Target{Mode: v1alpha1.ModeManaged, Type: "sim_network", Name: name}
	}
	errs := notForgotten([]addrs.Target{target("web[2]"), target("module.shop:main"), target("module.shop:more[0]")})
	if len(errs) != 2 {
		t.Fatalf("%d errors: %v", len(errs), errs)
	}
	for i, want := range []string{"these are instances of a ResourceSet: sim_network.web[2]. ", "these are resources of a Module: module.shop.sim_network.main, module.shop.sim_network.more[0]. "} {
		if !strings.Contains(errs[i].Error(), want) {
			t.Errorf("%q lacks %q", errs[i], want)
		}
	}
	if errs := notForgotten(nil); len(errs) > 0 {
		t.Errorf("nothing is left out: %v", errs)
	}
}
