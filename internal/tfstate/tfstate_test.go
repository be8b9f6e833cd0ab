package tfstate

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const whole = `{
  "version": 4, "terraform_version": "1.11.0", "serial": 3, "lineage": "0b1a", "outputs": {"url": {"value": "x", "type": "string"}},
  "resources": [
    {"mode": "data", "type": "sim_image", "name": "base", "provider": "provider[\"registry.terraform.io/hykube/sim\"]", "instances": [{"schema_version": 0, "attributes": {"id": "i"}}]},
    {"module": "module.a[\"x.y\"]", "mode": "managed", "type": "sim_network", "name": "main", "provider": "module.a.provider[\"registry.terraform.io/hykube/sim\"].west",
     "instances": [
       {"index_key": 0, "schema_version": 1, "attributes": {"id": "n", "size": 12345678901234567890}, "sensitive_attributes": [[{"type": "get_attr", "value": "secret"}]],
        "private": "AAE=", "dependencies": ["module.a.sim_network.other"], "create_before_destroy": true, "identity_schema_version": 2, "identity": {"id": "n"}},
       {"index_key": 0, "deposed": "0a1b2c3d", "status": "tainted", "schema_version": 0, "attributes_flat": {"id": "old", "tags.%": "0"}}
     ]}
  ],
  "check_results": null
}`

// TestRoundTrip expects that a file that was read and written has all that is pushed.
func TestRoundTrip(t *testing.T) {
	f, err := Parse(strings.NewReader(whole))
	if err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	var want, got any
	for text, into := range map[string]*any{whole: &want, string(out): &got} {
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		if err := d.Decode(into); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if got := f.Resources[1].Address(); got != `module.a["x.y"].sim_network.main` {
		t.Errorf("address %s", got)
	}
}

func TestRefusedFiles(t *testing.T) {
	resource := func(fields string) string {
		return `{"version": 4, "serial": 1, "lineage": "l", "resources": [{"mode": "managed", "type": "t", "name": "n", "provider": "p", ` + fields + `}]}`
	}
	for name, tc := range map[string]struct{ text, want string }{
		"nothing":                {" \n", "the state is empty"},
		"a saved plan":           {"PK\x03\x04...", "this is a saved plan"},
		"a login page":           {"<!DOCTYPE html><html>", "this is HTML"},
		"a list":                 {"[]", "which is a JSON object"},
		"truncated":              {whole[:len(whole)/2], "damaged or truncated"},
		"OpenTofu's form":        {`{"serial":1,"lineage":"l","meta":{},"encrypted_data":"AA==","encryption_version":"v0"}`, "tofu state pull decrypts it"},
		"show -json":             {`{"format_version":"1.0","values":{}}`, "terraform show -json"},
		"other JSON":             {`{"a":1}`, "has no version"},
		"version 3":              {`{"version":3,"modules":[]}`, "version 3, and version 4 is needed"},
		"version 5":              {`{"version":5}`, "newer than version 4"},
		"a version of words":     {`{"version":"four"}`, "is not a number"},
		"no lineage":             {`{"version":4,"serial":1}`, "has no lineage"},
		"a negative serial":      {`{"version":4,"serial":-1,"lineage":"l"}`, "damaged"},
		"resources as an object": {`{"version":4,"serial":1,"lineage":"l","resources":{}}`, "damaged"},
		"another mode":           {`{"version":4,"serial":1,"lineage":"l","resources":[{"mode":"ephemeral","type":"t","name":"n"}]}`, "neither managed nor data"},
		"no name":                {`{"version":4,"serial":1,"lineage":"l","resources":[{"mode":"managed","type":"t"}]}`, "no type or no name"},
		"twice":                  {resource(`"instances": [{"index_key": "a"}, {"index_key": "a"}]`), `the state has t.n["a"] twice`},
		"deposed twice":          {resource(`"instances": [{"deposed": "1"}, {"deposed": "1"}]`), "t.n (deposed 1) twice"},
		"a key of a list":        {resource(`"instances": [{"index_key": []}]`), "neither a number nor a string"},
		"a fractional key":       {resource(`"instances": [{"index_key": 1.5}]`), "neither a number nor a string"},
		"another status":         {resource(`"instances": [{"status": "gone"}]`), "unknown status"},
		"attributes as a list":   {resource(`"instances": [{"attributes": [1]}]`), "no JSON object"},
		"private not base64":     {resource(`"instances": [{"private": "?"}]`), "damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Parse(strings.NewReader(tc.text)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

// TestTooLarge reads one byte too many.
func TestTooLarge(t *testing.T) {
	if testing.Short() {
		t.Skip("needs 256 MiB")
	}
	if _, err := Parse(bytes.NewReader(make([]byte, MaxBytes+1))); err == nil || !strings.Contains(err.Error(), "more than 256 MiB") {
		t.Error(err)
	}
}

func TestProviders(t *testing.T) {
	for text, want := range map[string]ProviderAddress{
		`provider["registry.terraform.io/hashicorp/random"]`:               {"registry.terraform.io/hashicorp/random", ""},
		`provider["registry.opentofu.org/hashicorp/aws"].west`:             {"registry.opentofu.org/hashicorp/aws", "west"},
		`module.a["x"].provider["registry.terraform.io/hashicorp/aws"].eu`: {"registry.terraform.io/hashicorp/aws", "eu"},
	} {
		if got, err := ParseProvider(text); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, bad := range []string{"", "provider.aws", `provider["a"].b.c`, `provider["a"`} {
		if _, err := ParseProvider(bad); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}

func TestAddresses(t *testing.T) {
	for address, want := range map[string][4]string{
		`a_b.c`:                             {"", "a_b", "c", ""},
		`a_b.c[3]`:                          {"", "a_b", "c", "[3]"},
		`a_b.c["x].y"]`:                     {"", "a_b", "c", `["x].y"]`},
		`module.m["k.l"].module.n[0].a_b.c`: {`module.m["k.l"].module.n[0]`, "a_b", "c", ""},
		`module.m.a_b.c["d\"e"]`:            {"module.m", "a_b", "c", `["d\"e"]`},
	} {
		module, typ, name, key, ok := SplitAddress(address)
		if got := [4]string{module, typ, name, key}; !ok || got != want {
			t.Errorf("%s: %q %v", address, got, ok)
		}
	}
	for _, bad := range []string{"", "a", "a.", ".a", `a.b[`, `a.b["x]`, "x.a_b.c", "data.a.b"} {
		if _, _, _, _, ok := SplitAddress(bad); ok {
			t.Errorf("%s is accepted", bad)
		}
	}
	if got := WithoutKeys(`module.m["k[.l"].a_b.c[0]`); got != "module.m.a_b.c" {
		t.Error(got)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte(`{"version":4,"serial":1,"lineage":"l","resources":[{"mode":"managed","type":"t","name":"n","instances":[{"index_key":"\u0000"}]}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		file, err := Parse(bytes.NewReader(raw))
		if err != nil {
			return
		}
		out, err := json.Marshal(file)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(bytes.NewReader(out))
		if err != nil {
			t.Fatalf("what was written cannot be read: %v\n%s", err, out)
		}
		if len(again.Resources) != len(file.Resources) {
			t.Errorf("%d resources became %d", len(file.Resources), len(again.Resources))
		}
	})
}
