package catalog

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/schema"
)

func TestPutAndRemove(t *testing.T) {
	provides := func(name string, types ...string) Entry {
		e := Entry{Name: name, Schema: &schema.Provider{Resources: map[string]*schema.Schema{}}}
		for _, typeName := range types {
			e.Schema.Resources[typeName] = &schema.Schema{}
		}
		return e
	}
	c := New(nil)
	c.Put(provides("b", "x_one", "x_two"))
	c.Put(provides("a", "x_one", "x_gone"))
	c.Put(provides("a", "x_one"))
	if diff := cmp.Diff([]string{"a", "b"}, c.Names()); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"x_one", "x_two"}, c.TypeNamesOf(v1alpha1.ModeManaged)); diff != "" {
		t.Errorf("types (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a", "b"}, c.ProvidersOf(v1alpha1.ModeManaged, "x_one")); diff != "" {
		t.Errorf("providers of x_one (-want +got):\n%s", diff)
	}
	c.Remove("b")
	c.Remove("never there")
	if got := c.Schema(v1alpha1.ModeManaged, "x_two"); got != nil {
		t.Errorf("a type of a provider that is gone: %v", got)
	}
	if _, ok := c.Get("b"); ok || c.Schema(v1alpha1.ModeManaged, "x_one") == nil {
		t.Errorf("b is there: %t; the other's x_one: %v", ok, c.Schema(v1alpha1.ModeManaged, "x_one"))
	}
}

func TestConfiguration(t *testing.T) {
	entry := Entry{Name: "sim", Schema: &schema.Provider{Config: &schema.Schema{Block: &schema.Block{
		Attributes: []*schema.Attribute{
			{Name: "region", Type: cty.String, Optional: true},
			{Name: "port", Type: cty.Number, Optional: true},
			{Name: "token", Type: cty.String, Optional: true, Sensitive: true},
			{Name: "login", Type: cty.Object(map[string]cty.Type{"user": cty.String, "password": cty.String}), Optional: true},
		},
	}}}}
	secrets := map[string]string{"token": "${not.a.template} %{if}", "password": "hunter2"}
	secret := func(_ context.Context, name, key string) ([]byte, error) {
		if value, ok := secrets[key]; ok && name == "credentials" {
			return []byte(value), nil
		}
		return nil, errors.New("there is no such Secret")
	}
	ref := func(argument, key string) v1alpha1.SecretArgument {
		return v1alpha1.SecretArgument{Argument: argument, Name: "credentials", Key: key}
	}
	login := cty.Object(map[string]cty.Type{"user": cty.String, "password": cty.String})
	null := map[string]cty.Value{
		"region": cty.NullVal(cty.String), "port": cty.NullVal(cty.Number), "token": cty.NullVal(cty.String), "login": cty.NullVal(login),
	}
	with := func(name string, v cty.Value) cty.Value {
		all := map[string]cty.Value{}
		for k, v := range null {
			all[k] = v
		}
		all[name] = v
		return cty.ObjectVal(all)
	}
	known := func(a lang.Address) (cty.Value, bool) {
		return cty.ObjectVal(map[string]cty.Value{"id": cty.StringVal("net-1"), "token": cty.StringVal("hunter2").Mark(lang.Sensitive)}), a.String() == "sim_network.main"
	}
	for name, test := range map[string]struct {
		config string
		refs   []v1alpha1.SecretArgument
		want   cty.Value
		err    string
	}{
		"nothing":                               {want: cty.ObjectVal(null)},
		"null":                                  {config: `null`, refs: []v1alpha1.SecretArgument{ref("token", "password")}, want: with("token", cty.StringVal("hunter2"))},
		"a plain argument":                      {config: `{"region":"here"}`, want: with("region", cty.StringVal("here"))},
		"a secret is no template":               {refs: []v1alpha1.SecretArgument{ref("token", "token")}, want: with("token", cty.StringVal(secrets["token"]))},
		"a secret within an object":             {config: `{"login":{"user":"me"}}`, refs: []v1alpha1.SecretArgument{ref("login.password", "password")}, want: with("login", cty.ObjectVal(map[string]cty.Value{"user": cty.StringVal("me"), "password": cty.StringVal("hunter2")}))},
		"set twice":                             {config: `{"token":"x"}`, refs: []v1alpha1.SecretArgument{ref("token", "token")}, err: "remove one of the two"},
		"within what is no object":              {config: `{"login":"me"}`, refs: []v1alpha1.SecretArgument{ref("login.password", "password")}, err: `"login" is not an object`},
		"no such secret":                        {refs: []v1alpha1.SecretArgument{ref("token", "absent")}, err: "there is no such Secret"},
		"a reference to a resource":             {config: `{"region":"${sim_network.main.id}"}`, want: with("region", cty.StringVal("net-1"))},
		"a reference to a secret":               {config: `{"token":"${sim_network.main.token}"}`, want: with("token", cty.StringVal("hunter2"))},
		"a reference to nothing":                {config: `{"region":"${sim_network.mian.id}"}`, err: "spec.config.region, column 3: Reference to a missing resource"},
		"an argument that there is not":         {config: `{"regoin":"here"}`, err: "spec.config.regoin"},
		"a secret of a wrong type stays secret": {refs: []v1alpha1.SecretArgument{ref("port", "password")}, err: "spec.config.port"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := &v1alpha1.ProviderConfig{}
			cfg.Spec.SecretRefs = test.refs
			if test.config != "" {
				cfg.Spec.Config = &runtime.RawExtension{Raw: []byte(test.config)}
			}
			got, err := New(nil).Configuration(t.Context(), entry, cfg, Sources{Secret: secret, Value: known})
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) || strings.Contains(err.Error(), "hunter2") {
					t.Errorf("error %v, want one that says %q and no secret", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !got.Config.RawEquals(test.want) {
				t.Errorf("got %#v, want %#v", got.Config, test.want)
			}
			again, err := New(nil).Configuration(t.Context(), entry, cfg, Sources{Secret: secret, Value: known})
			if err != nil || again.Key != got.Key {
				t.Errorf("the key of an equal configuration is %q, then %q (%v)", got.Key, again.Key, err)
			}
		})
	}
}

func TestConfigurationBeforeAnythingIsKnown(t *testing.T) {
	entry := Entry{Name: "sim", Schema: &schema.Provider{Config: &schema.Schema{Block: &schema.Block{
		Attributes: []*schema.Attribute{{Name: "region", Type: cty.String, Optional: true}, {Name: "port", Type: cty.Number, Required: true}},
	}}}}
	c := New(nil)
	c.Put(Entry{Name: "sim", Schema: &schema.Provider{Resources: map[string]*schema.Schema{"sim_network": {Block: &schema.Block{
		Attributes: []*schema.Attribute{{Name: "id", Type: cty.String, Computed: true}},
	}}}}})
	cfg := &v1alpha1.ProviderConfig{}
	cfg.Spec.Config = &runtime.RawExtension{Raw: []byte(`{"region": "x-${sim_network.main.id}-${secret.a.b}", "port": "${sim_network.main.prot}"}`)}
	conf, err := c.Configuration(t.Context(), entry, cfg, Sources{})
	if err != nil || conf.Config.GetAttr("region").IsKnown() || conf.Key == "" {
		t.Errorf("got %#v, %v", conf, err)
	}
	var got []string
	for _, r := range References(cfg) {
		got = append(got, r.Address.String()+" at "+r.Field)
	}
	want := []string{"sim_network.main at spec.config.port, column 3", "sim_network.main at spec.config.region, column 5", "secret.a at spec.config.region, column 28"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("references (-want +got):\n%s", diff)
	}
	if conf.Ephemeral {
		t.Error("it is called ephemeral")
	}
	// A function that is not known yet hides no reference: users need the right to what an argument refers to.
	called := &v1alpha1.ProviderConfig{}
	called.Spec.Config = &runtime.RawExtension{Raw: []byte(`{"region": "${provider::sim::upper(secret.a.b)}"}`)}
	if refs := References(called); len(refs) != 1 || refs[0].Address.String() != "secret.a" {
		t.Errorf("references in a call of a function: %+v", refs)
	}
	cfg.Spec.Config.Raw = []byte(`{"port": 1, "region": "${ephemeral.sim_token.t.value}"}`)
	if conf, err := c.Configuration(t.Context(), entry, cfg, Sources{}); err != nil || !conf.Ephemeral {
		t.Errorf("a configuration with an ephemeral value: %+v, %v", conf, err)
	}
	cfg.Spec.Config.Raw = []byte(`{"port": "${sim_network.main.prot}"}`)
	if err := c.CheckReferences(t.Context(), entry, cfg, nil); err == nil || !strings.Contains(err.Error(), "spec.config.port, column 3") || !strings.Contains(err.Error(), "prot") {
		t.Errorf("an attribute that there is not: %v", err)
	}
}

func TestTypesOfEveryMode(t *testing.T) {
	one := func(name string) map[string]*schema.Schema {
		return map[string]*schema.Schema{name: {Block: &schema.Block{}}}
	}
	c := New(nil)
	c.Put(Entry{Name: "a", Schema: &schema.Provider{
		Resources: one("x_thing"), DataSources: one("x_thing"), Ephemerals: one("x_token"), Actions: one("x_reboot"),
		Functions: map[string]*schema.Function{"upper": {Return: cty.String}},
	}})
	c.Put(Entry{Name: "b", Schema: &schema.Provider{DataSources: one("x_thing")}})
	for mode, want := range map[v1alpha1.Mode]struct {
		name      string
		providers []string
	}{
		"":                     {"x_thing", []string{"a"}},
		v1alpha1.ModeManaged:   {"x_thing", []string{"a"}},
		v1alpha1.ModeData:      {"x_thing", []string{"a", "b"}},
		v1alpha1.ModeEphemeral: {"x_token", []string{"a"}},
		v1alpha1.ModeAction:    {"x_reboot", []string{"a"}},
	} {
		if c.Schema(mode, want.name) == nil {
			t.Errorf("%s: no %s", mode, want.name)
		}
		if diff := cmp.Diff(want.providers, c.ProvidersOf(mode, want.name)); diff != "" {
			t.Errorf("%s: providers (-want +got):\n%s", mode, diff)
		}
		if diff := cmp.Diff([]string{want.name}, c.TypeNamesOf(mode)); diff != "" {
			t.Errorf("%s: names (-want +got):\n%s", mode, diff)
		}
	}
	if c.Schema(v1alpha1.ModeEphemeral, "x_thing") != nil || c.Schema("odd", "x_thing") != nil {
		t.Error("a type is found under a mode that it does not have")
	}
	if e, _ := c.Get("a"); e.Schema.Functions["upper"] == nil {
		t.Error("functions are not those of the provider")
	}
	c.Remove("a")
	if c.Schema(v1alpha1.ModeAction, "x_reboot") != nil || c.Schema(v1alpha1.ModeData, "x_thing") == nil {
		t.Error("the other provider's types went, or this one's stayed")
	}
}

func TestMeta(t *testing.T) {
	block := &schema.Block{Attributes: []*schema.Attribute{{Name: "module", Type: cty.String, Optional: true}}}
	with := Entry{Name: "sim", Schema: &schema.Provider{Meta: &schema.Schema{Block: block}}}
	without := Entry{Name: "sim", Schema: &schema.Provider{}}
	null := cty.NullVal(block.ImpliedType())
	for name, test := range map[string]struct {
		entry Entry
		meta  string
		want  cty.Value
		err   string
	}{
		"the provider takes none":   {without, "", cty.NilVal, ""},
		"null where it takes none":  {without, "null", cty.NilVal, ""},
		"given where it takes none": {without, `{"module":"x"}`, cty.NilVal, "takes no metadata"},
		"not configured":            {with, "", null, ""},
		"null":                      {with, "null", null, ""},
		"configured":                {with, `{"module":"${upper(\"x\")}"}`, cty.ObjectVal(map[string]cty.Value{"module": cty.StringVal("X")}), ""},
		"empty":                     {with, `{}`, cty.ObjectVal(map[string]cty.Value{"module": cty.NullVal(cty.String)}), ""},
		"an unknown argument":       {with, `{"modul":"x"}`, cty.NilVal, "spec.meta.modul"},
		"a reference":               {with, `{"module":"${sim_network.a.id}"}`, cty.NilVal, "spec.meta: refers to sim_network.a"},
		"no object":                 {with, `[]`, cty.NilVal, "spec.meta: must be an object"},
	} {
		t.Run(name, func(t *testing.T) {
			var cfg *v1alpha1.ProviderConfig
			if test.meta != "" {
				cfg = &v1alpha1.ProviderConfig{}
				cfg.Spec.Meta = &runtime.RawExtension{Raw: []byte(test.meta)}
			}
			got, err := New(nil).Meta(t.Context(), test.entry, cfg)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("error %v, want one that says %q", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if (got == cty.NilVal) != (test.want == cty.NilVal) || got != cty.NilVal && !got.RawEquals(test.want) {
				t.Errorf("got %#v, want %#v", got, test.want)
			}
		})
	}
}

// A sensitive value that may only be passed on is refused in a configuration, in the field where the arguments are
// written.
func TestConfigurationOfWhatMayOnlyBePassedOn(t *testing.T) {
	entry := Entry{Name: "sim", Schema: &schema.Provider{Config: &schema.Schema{Block: &schema.Block{
		Attributes: []*schema.Attribute{{Name: "region", Type: cty.String, Optional: true}},
	}}}}
	cfg := &v1alpha1.ProviderConfig{}
	cfg.Spec.Config = &runtime.RawExtension{Raw: []byte(`{"region": "${sim_network.main.pin}"}`)}
	pin := cty.ObjectVal(map[string]cty.Value{"pin": cty.StringVal("1").Mark(lang.Sensitive)})
	_, err := New(nil).Configuration(t.Context(), entry, cfg, Sources{Value: func(lang.Address) (cty.Value, bool) {
		v, err := lang.PassOnly(pin, "you need get on sim-networks/state")
		return v, err == nil
	}})
	if err == nil || !strings.HasPrefix(err.Error(), "spec.config: Missing right to a sensitive value") {
		t.Errorf("error %v, want it to name spec.config", err)
	}
}
