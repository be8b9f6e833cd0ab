package registry

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hykube/hykube/api/v1alpha1"
)

// TestADeleteThatUncoversAnotherAccount needs the right to approve plans if resources would take another ProviderConfig after the
// delete.
func TestADeleteThatUncoversAnotherAccount(t *testing.T) {
	config := func(name, provider string) v1alpha1.ProviderConfig {
		cfg := v1alpha1.ProviderConfig{Spec: v1alpha1.ProviderConfigSpec{Provider: provider}}
		cfg.Name, cfg.Namespace = name, "team"
		return cfg
	}
	for why, tc := range map[string]struct {
		deletes v1alpha1.ProviderConfig
		beside  []v1alpha1.ProviderConfig
		allowed string
		refused bool
	}{
		"without the right":          {config("default", "sim"), []v1alpha1.ProviderConfig{config("sim", "sim")}, "create plans", true},
		"with the right":             {config("default", "sim"), []v1alpha1.ProviderConfig{config("sim", "sim")}, "approve plans", false},
		"no other one":               {config("default", "sim"), nil, "create plans", false},
		"of another provider":        {config("default", "aws"), []v1alpha1.ProviderConfig{config("sim", "sim")}, "create plans", false},
		"a name of another provider": {config("default", "sim"), []v1alpha1.ProviderConfig{config("sim", "aws")}, "create plans", false},
		"one that resources name":    {config("eu", "sim"), []v1alpha1.ProviderConfig{config("sim", "sim")}, "create plans", false},
		"the one that is covered":    {config("sim", "sim"), []v1alpha1.ProviderConfig{config("default", "sim")}, "create plans", false},
		"a provider named default":   {config("default", "default"), nil, "create plans", false},
	} {
		list := func(context.Context, *metainternalversion.ListOptions) (runtime.Object, error) {
			return &v1alpha1.ProviderConfigList{Items: append(tc.beside, tc.deletes)}, nil
		}
		err := stackConfig(t, tc.allowed).mayUncover(as(t, "eve"), list, &tc.deletes)
		if apierrors.IsForbidden(err) != tc.refused || err != nil && !tc.refused || tc.refused && !strings.Contains(err.Error(), `would take the one with the name "sim"`) {
			t.Errorf("%s: %v", why, err)
		}
	}
}
