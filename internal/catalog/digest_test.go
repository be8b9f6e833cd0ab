package catalog

import (
	"testing"

	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/provider"

	"github.com/zclconf/go-cty/cty"
)

// TestDigests compares configurations with one that sets an endpoint and a token.
func TestDigests(t *testing.T) {
	text := cty.StringVal
	config := func(endpoint, token cty.Value, more map[string]cty.Value) provider.Digest {
		args := map[string]cty.Value{"endpoint": endpoint, "auth": cty.ListVal([]cty.Value{cty.ObjectVal(map[string]cty.Value{"token": token})})}
		for name, v := range more {
			args[name] = v
		}
		d, err := digestOf(cty.ObjectVal(args), nil)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	before := config(text("e"), text("secret"), nil)
	null := cty.NullVal(cty.String)
	ephemeral := func(v string) cty.Value { return text(v).Mark(lang.Ephemeral) }
	for name, tc := range map[string]struct {
		digest provider.Digest
		equal  bool
	}{
		"the same":                           {config(text("e"), text("secret"), nil), true},
		"marked as sensitive":                {config(text("e").Mark(lang.Sensitive), text("secret"), nil), true},
		"with an argument that is not set":   {config(text("e"), text("secret"), map[string]cty.Value{"more": null, "blocks": cty.ListValEmpty(cty.String)}), true},
		"with a rotated token":               {config(text("e"), text("other"), nil), false},
		"without a token":                    {config(text("e"), null, nil), false},
		"with an empty token":                {config(text("e"), text(""), nil), false},
		"with another endpoint":              {config(text("f"), text("secret"), nil), false},
		"without an endpoint":                {config(null, text("secret"), nil), false},
		"with an ephemeral argument as well": {config(text("e"), text("secret"), map[string]cty.Value{"session": ephemeral("s")}), false},
	} {
		if got := tc.digest == before; got != tc.equal {
			t.Errorf("%s: equal %t, want %t", name, got, tc.equal)
		}
	}
	one, two := config(text("e"), ephemeral("one"), nil), config(text("e"), ephemeral("two"), nil)
	if other := config(text("f"), ephemeral("one"), nil); !one.Ephemeral || one != two || one == other {
		t.Errorf("with an ephemeral token: %+v, with another one: %+v, with another endpoint: %+v", one, two, other)
	}
}
