package scope

import (
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/resource"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestConfigOf finds the ProviderConfig of a resource among those of its namespace.
func TestConfigOf(t *testing.T) {
	config := func(provider string) *v1alpha1.ProviderConfig {
		return &v1alpha1.ProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: provider}, Spec: v1alpha1.ProviderConfigSpec{Provider: provider}}
	}
	for reason, test := range map[string]struct {
		named   string
		there   map[string]string
		want    string
		refused bool
	}{
		"none":                       {},
		"the default one":            {there: map[string]string{"default": "test", "test": "test"}, want: "default"},
		"default is of another one":  {there: map[string]string{"default": "other", "test": "test"}, want: "test"},
		"only of another provider":   {there: map[string]string{"default": "other"}},
		"named":                      {named: "x", there: map[string]string{"default": "test", "x": "test"}, want: "x"},
		"named, of another provider": {named: "x", there: map[string]string{"x": "other"}, refused: true},
		"named, not there":           {named: "x", there: map[string]string{"default": "test"}, refused: true},
	} {
		r := &resource.Resource{Entry: catalog.Entry{Name: "test"}}
		r.Lifecycle.ProviderConfig = test.named
		found := ""
		cfg, err := configOf(r, func(name string) (*v1alpha1.ProviderConfig, error) {
			if of, ok := test.there[name]; ok {
				cfg := config(of)
				cfg.Name = name
				return cfg, nil
			}
			return nil, nil
		})
		if cfg != nil {
			found = cfg.Name
		}
		if found != test.want || (err != nil) != test.refused {
			t.Errorf("%s: %q, %v", reason, found, err)
		}
	}
}
