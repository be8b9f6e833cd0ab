package catalog

import (
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/provider"

	"github.com/zclconf/go-cty/cty"
)

// TestDigests compares configurations with one that sets an endpoint and a token from a Secret.
func TestDigests(t *testing.T) {
	text := cty.StringVal
	config := func(endpoint, token cty.Value, more map[string]cty.Value) provider.Digest {
		args := map[string]cty.Value{"endpoint": endpoint, "auth": cty.ListVal([]cty.Value{cty.ObjectVal(map[string]cty.Value{"token": token})})}
		for name, v := range more {
			args[name] = v
		}
		cfg := &v1alpha1.ProviderConfig{Spec: v1alpha1.ProviderConfigSpec{SecretRefs: []v1alpha1.SecretArgument{{Argument: "auth.token"}}}}
		d, err := digestOf(cty.ObjectVal(args), cfg)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	before := config(text("e"), text("secret"), nil)
	null := cty.NullVal(cty.String)
	for name, tc := range map[string]struct {
		digest            provider.Digest
		arguments, values bool
	}{
		"the same":                           {config(text("e"), text("secret"), nil), true, true},
		"marked as sensitive":                {config(text("e").Mark(lang.Sensitive), text("secret"), nil), true, true},
		"with an argument that is not set":   {config(text("e"), text("secret"), map[string]cty.Value{"more": null, "blocks": cty.ListValEmpty(cty.String)}), true, true},
		"with a rotated token":               {config(text("e"), text("other"), nil), true, false},
		"without a token":                    {config(text("e"), null, nil), false, false},
		"with an empty token":                {config(text("e"), text(""), nil), false, false},
		"with another endpoint":              {config(text("f"), text("secret"), nil), false, false},
		"without an endpoint":                {config(null, text("secret"), nil), false, false},
		"with an ephemeral argument as well": {config(text("e"), text("secret"), map[string]cty.Value{"session": text("s").Mark(lang.Ephemeral)}), true, false},
	} {
		if got := tc.digest.Arguments == before.Arguments; got != tc.arguments {
			t.Errorf("%s: equal arguments %t, want %t", name, got, tc.arguments)
		}
		if got := tc.digest.Values == before.Values; got != tc.values {
			t.Errorf("%s: equal values %t, want %t", name, got, tc.values)
		}
	}
	if d := config(text("e"), text("secret").Mark(lang.Ephemeral), nil); d.Values != provider.EphemeralValues {
		t.Errorf("with an ephemeral token: %+v", d)
	}
}
