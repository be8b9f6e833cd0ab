package catalog

import (
	"context"
	"slices"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/schema"

	"github.com/zclconf/go-cty/cty"
	"k8s.io/apimachinery/pkg/runtime"
)

// TestACachedConfigurationFollowsItsValues evaluates ProviderConfigs again after a change of a value that they have.
func TestACachedConfigurationFollowsItsValues(t *testing.T) {
	newEntry := func() Entry {
		return Entry{Name: "sim", Schema: &schema.Provider{Config: &schema.Schema{Block: &schema.Block{Attributes: []*schema.Attribute{
			{Name: "region", Type: cty.String, Optional: true}, {Name: "token", Type: cty.String, Optional: true, Sensitive: true},
		}}}}}
	}
	entry, token, id := newEntry(), "first", "net-1"
	from := Sources{
		Secret: func(context.Context, string, string) ([]byte, error) { return []byte(token), nil },
		Value: func(lang.Address) (cty.Value, bool) {
			return cty.ObjectVal(map[string]cty.Value{"id": cty.StringVal(id)}), true
		},
	}
	c := New(nil)
	evaluate := func(config, wantRegion string) {
		t.Helper()
		cfg := &v1alpha1.ProviderConfig{}
		cfg.Spec.SecretRefs = []v1alpha1.SecretArgument{{Argument: "token", Name: "credentials", Key: "token"}}
		cfg.Spec.Config = &runtime.RawExtension{Raw: []byte(config)}
		for range 2 {
			got, err := c.Configuration(t.Context(), entry, cfg, from)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got.Secrets, []string{token}) {
				t.Errorf("the secrets are %q, want %q", got.Secrets, token)
			}
			if want := cty.ObjectVal(map[string]cty.Value{"region": cty.StringVal(wantRegion), "token": cty.StringVal(token)}); !got.Config.RawEquals(want) {
				t.Errorf("%s is %#v, want %#v", config, got.Config, want)
			}
		}
	}
	expectCached := func(want int) {
		t.Helper()
		if n := c.constants.Len(); n != want {
			t.Errorf("%d configurations are cached, want %d", n, want)
		}
	}
	evaluate(`{"region":"eu"}`, "eu")
	expectCached(1)
	token = "second ${no.template}"
	evaluate(`{"region":"eu"}`, "eu")
	evaluate(`{"region":"us"}`, "us")
	expectCached(3)
	evaluate(`{"region":"\u0024{sim_network.main.id}"}`, "net-1")
	id = "net-2"
	evaluate(`{"region":"\u0024{sim_network.main.id}"}`, "net-2")
	expectCached(3)
	entry = newEntry()
	evaluate(`{"region":"eu"}`, "eu")
	expectCached(4)
	for _, token = range []string{"a\xff", "a\xfe", "a\ufffd"} { // JSON would encode all of these alike
		evaluate(`{"region":"eu"}`, "eu")
	}
	c.constants.Clear()
	expectCached(0)
}
