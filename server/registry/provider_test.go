package registry

import (
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
)

// TestSourceOfAProvider changes the source of a Provider. Another spelling of the same address is no other provider.
func TestSourceOfAProvider(t *testing.T) {
	with := func(source string) *v1alpha1.Provider {
		return &v1alpha1.Provider{Spec: v1alpha1.ProviderSpec{Source: source}}
	}
	for _, tc := range []struct {
		old, now string
		same     bool
	}{
		{"hykube/sim", "hykube/sim", true},
		{"hykube/sim", "registry.terraform.io/hykube/sim", true},
		{"registry.terraform.io/hashicorp/time", "time", true},
		{"hykube/sim", "hykube/other", false},
		{"hykube/sim", "other/sim", false},
		{"hykube/sim", "registry.example.com/hykube/sim", false},
		{"hykube/sim", "a/b/c/d", false},
		{"a/b/c/d", "hykube/sim", false},
	} {
		errs := validateProviderUpdate(with(tc.now), with(tc.old))
		if (len(errs) == 0) != tc.same || len(errs) > 0 && errs[0].Field != "spec.source" {
			t.Errorf("%s becomes %s: %v", tc.old, tc.now, errs)
		}
	}
}
