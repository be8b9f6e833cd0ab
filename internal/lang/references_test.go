package lang

import (
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function/stdlib"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/schema"
	"github.com/hykube/hykube/internal/schema/schematest"
)

// world has one of each kind of thing that can be referred to.
func world(a Address) (cty.Value, bool) {
	v, ok := map[string]cty.Value{
		"sim_network.main":                         network(),
		"sim_network.my.name":                      network(),
		"data.sim_image.base":                      schematest.Obj("id", schematest.Str("img-1"), "disks", cty.ListVal([]cty.Value{schematest.Obj("gb", schematest.Num(1)), schematest.Obj("gb", schematest.Num(2))})),
		"data.sim_image.a.b":                       schematest.Obj("id", schematest.Str("img-2")),
		"ephemeral.sim_token.t":                    schematest.Obj("value", schematest.Str("t0ken")),
		"configmap.app":                            schematest.Obj("region", schematest.Str("eu"), "a.b", schematest.Str("dotted"), "tpl", schematest.Str("hello ${name}")),
		"secret.db":                                schematest.Obj("password", schematest.Str("s3cret")),
		"namespace.shared.sim_network.main":        schematest.Obj("id", schematest.Str("net-9")),
		"namespace.shared.data.sim_image.x":        schematest.Obj("id", schematest.Str("img-9")),
		"namespace.shared.configmap.app":           schematest.Obj("region", schematest.Str("us")),
		"namespace.1st.secret.db":                  schematest.Obj("password", schematest.Str("other")),
		"namespace.shared.ephemeral.sim_token.tok": schematest.Obj("value", schematest.Str("t9")),
	}[a.String()]
	return v, ok
}

func TestEveryFormOfReference(t *testing.T) {
	ephemeral := func(s string) cty.Value { return schematest.Str(s).Mark(Ephemeral) }
	for expr, tc := range map[string]struct {
		address string
		want    cty.Value
	}{
		`sim_network.main.id`:                             {"sim_network.main", schematest.Str("net-1")},
		`sim_network["main"].id`:                          {"sim_network.main", schematest.Str("net-1")},
		`sim_network["my.name"].id`:                       {"sim_network.my.name", schematest.Str("net-1")},
		`sim_network.main.zones[1]`:                       {"sim_network.main", schematest.Str("b")},
		`sim_network.main.zones.0`:                        {"sim_network.main", schematest.Str("a")},
		`join("", sim_network.main.zones[*])`:             {"sim_network.main", schematest.Str("ab")},
		`data.sim_image.base.id`:                          {"data.sim_image.base", schematest.Str("img-1")},
		`data.sim_image["a.b"].id`:                        {"data.sim_image.a.b", schematest.Str("img-2")},
		`data["sim_image"]["base"].id`:                    {"data.sim_image.base", schematest.Str("img-1")},
		`data.sim_image.base.disks[*].gb`:                 {"data.sim_image.base", cty.ListVal([]cty.Value{schematest.Num(1), schematest.Num(2)})},
		`[for d in data.sim_image.base.disks : d.gb * 2]`: {"data.sim_image.base", cty.TupleVal([]cty.Value{schematest.Num(2), schematest.Num(4)})},
		`ephemeral.sim_token.t.value`:                     {"ephemeral.sim_token.t", ephemeral("t0ken")},
		`"x${ephemeral.sim_token.t.value}"`:               {"ephemeral.sim_token.t", ephemeral("xt0ken")},
		`ephemeralasnull(ephemeral.sim_token.t.value)`:    {"ephemeral.sim_token.t", cty.NullVal(cty.String)},
		`configmap.app.region`:                            {"configmap.app", schematest.Str("eu")},
		`configmap.app["a.b"]`:                            {"configmap.app", schematest.Str("dotted")},
		`templatestring(configmap.app.tpl, {name = "x"})`: {"configmap.app", schematest.Str("hello x")},
		`keys(configmap.app)[0]`:                          {"configmap.app", schematest.Str("a.b")},
		`secret.db.password`:                              {"secret.db", schematest.Str("s3cret").Mark(Sensitive)},
		`namespace.shared.sim_network.main.id`:            {"namespace.shared.sim_network.main", schematest.Str("net-9")},
		`namespace["shared"].sim_network["main"].id`:      {"namespace.shared.sim_network.main", schematest.Str("net-9")},
		`namespace.shared.data.sim_image.x.id`:            {"namespace.shared.data.sim_image.x", schematest.Str("img-9")},
		`namespace.shared.configmap.app.region`:           {"namespace.shared.configmap.app", schematest.Str("us")},
		`namespace["1st"].secret.db.password`:             {"namespace.1st.secret.db", schematest.Str("other").Mark(Sensitive)},
		`namespace.shared.ephemeral.sim_token.tok.value`:  {"namespace.shared.ephemeral.sim_token.tok", ephemeral("t9")},
		`namespace.home.sim_network.main.id`:              {"sim_network.main", schematest.Str("net-1")}, // the author's own namespace
	} {
		e, diags := ParseExpression("${"+expr+"}", "v", ExpressionOptions{Namespace: "home"})
		if len(diags) > 0 {
			t.Errorf("%s: %+v", expr, diags)
			continue
		}
		if got := e.Addresses(); len(got) != 1 || got[0].String() != tc.address {
			t.Errorf("%s: refers to %v, want %s", expr, got, tc.address)
			continue
		}
		v, diags := e.Evaluate(world, cty.NilVal)
		if len(diags) > 0 {
			t.Errorf("%s: %+v", expr, diags)
		} else if !v.RawEquals(tc.want) {
			t.Errorf("%s: got %#v, want %#v", expr, v, tc.want)
		}
	}
}

func TestReferencesThatAreNone(t *testing.T) {
	for expr, want := range map[string]string{
		`action.sim_reboot.now.id`:              "v, column 3: an action has no result",
		`namespace.shared.action.sim_reboot.x`:  "v, column 3: an action has no result",
		`self.id`:                               "v, column 3: only a postcondition",
		`namespace.shared.self.id`:              `v, column 3: "self" cannot be used after`,
		`namespace.shared`:                      "v, column 3: must be followed by the name of a namespace and a reference",
		`namespace`:                             "v, column 3: must be followed by the name of a namespace",
		`namespace.Shared.sim_network.main.id`:  `v, column 3: "Shared" cannot be the name of a namespace`,
		`namespace["a.b"].sim_network.main.id`:  `v, column 3: "a.b" cannot be the name of a namespace`,
		`data.sim_image`:                        "v, column 3: must be followed by the name of a data source, written out, as in ${data.sim_image.main.id}",
		`data`:                                  "v, column 3: must be followed by a type and a name",
		`ephemeral.sim_token[0]`:                "v, column 3: must be followed by the name of an ephemeral resource",
		`configmap`:                             "v, column 3: must be followed by the name of a ConfigMap, written out, as in ${configmap.main.key}",
		`configmap.App.x`:                       `v, column 3: "App" cannot be the name of a ConfigMap`,
		`secret["../x"].y`:                      `v, column 3: "../x" cannot be the name of a Secret`,
		`sim_network.my_net.id`:                 `v, column 3: "my_net" cannot be the name of a resource`,
		`sim_network[configmap.app.name].id`:    `v, column 3: "sim_network" must be followed by the name`,
		`data-sim-image.base.id`:                "v, column 3: write data.sim_image instead of data-sim-image",
		`ConfigMap.app.x`:                       "v, column 3: Write configmap",
		`count.index`:                           "v, column 3: known only in the template of a ResourceSet with spec.count",
		`each.key`:                              "v, column 3: known only in the template of a ResourceSet with spec.forEach",
		`local.x`:                               "v, column 3: ${configmap.NAME.KEY}",
		`module.x`:                              "v, column 3: followed by the name of a Module and of its output, as in ${module.shop.url}",
		`module["x.y"].z`:                       `v, column 3: "x.y" cannot be the name of a Module`,
		`path.module`:                           "v, column 3: expressions cannot read files",
		`terraform.workspace`:                   "v, column 3: no workspace",
		`resource.sim_network.main.id`:          "v, column 3: write the reference without it",
		`uper("a")`:                             `v, column 3: Did you mean "upper"?`,
		`file("x")`:                             "v, column 3: expressions cannot read files; put the content into a ConfigMap",
		`core::templatefile("x", {})`:           "v, column 3: templatestring(configmap.NAME.KEY",
		`[for x in sim_network.main.l : no(x)]`: `v, column 34: There is no function "no".`,
		`provider::sim::uper("a")`:              `v, column 3: The provider "sim" has no function "uper". Did you mean "upper"? It has: lower, upper.`,
		`provider::simm::upper("a")`:            `v, column 3: There is no provider "simm" with functions. Did you mean "sim"? Providers with functions: sim.`,
		`provider::sim`:                         "v, column 16: open parenthesis",
		`sim::upper("a")`:                       "v, column 3: provider::NAME::FUNCTION",
		`data.sim_image.base.x + ephemeral.a`:   "v, column 27: must be followed by the name of an ephemeral resource",
		`namespace.x.data.sim_image`:            "v, column 3: as in ${namespace.x.data.sim_image.main.id}",
	} {
		fns := Functions{"provider::sim::upper": stdlib.UpperFunc, "provider::sim::lower": stdlib.LowerFunc}
		_, diags := ParseExpression("${"+expr+"}", "v", ExpressionOptions{Functions: fns})
		at, what, _ := strings.Cut(want, ": ")
		if len(diags) == 0 || !diag.HasErrors(diags) || diags[0].Attribute != at || !strings.Contains(diags[0].Detail, what) {
			t.Errorf("%s\ngot  %+v\nwant %s", expr, diags, want)
		}
	}
}

func TestProviderFunctions(t *testing.T) {
	fns := Functions{"provider::sim::upper": stdlib.UpperFunc}
	c, diags := parseConfig(map[string]any{"name": "${provider::sim::upper(sim_network.main.id)}"}, schematest.Machine(), Functions{}, fns)
	if len(diags) > 0 {
		t.Fatal(diags)
	}
	v, diags := c.Evaluate(scope)
	if len(diags) > 0 {
		t.Fatal(diags)
	}
	schematest.Same(t, v.GetAttr("name"), schematest.Str("NET-1"))
	if _, diags := parseConfig(map[string]any{"name": "${provider::sim::upper()}"}, schematest.Machine(), fns); !diag.HasErrors(diags) {
		t.Error("a call without arguments is accepted")
	}
	if _, diags := parseConfig(map[string]any{"name": "${provider::sim::upper(\"a\")}"}, schematest.Machine()); !diag.HasErrors(diags) || !strings.Contains(diags[0].Detail, "no provider with functions") {
		t.Errorf("got %+v", diags)
	}
}

// nested is a schema with depth.
func nested() *schema.Block {
	return schematest.Block(schematest.Computed("id", cty.String), schematest.Computed("tags", cty.Map(cty.String)), schematest.Computed("any", cty.DynamicPseudoType),
		schematest.Computed("size", cty.Number), schematest.Computed("set", cty.Set(cty.Object(map[string]cty.Type{"a": cty.String}))),
		schematest.Sensitive(schematest.Computed("password", cty.String)),
		schematest.Object(schematest.Computed("disk", cty.NilType), schema.NestingSingle, schematest.Computed("gb", cty.Number)),
		schematest.NestedBlock("rule", schema.NestingList, schematest.Computed("port", cty.Number)))
}

func catalogOf(b *schema.Block) Catalog {
	return Catalog{
		Block: func(a Address) *schema.Block {
			if a.Type == "sim_network" && a.Mode == "" || a.Type == "sim_image" && a.Mode == v1alpha1.ModeData || a.Type == "sim_token" && a.Mode == v1alpha1.ModeEphemeral {
				return b
			}
			return nil
		},
		Exists: func(a Address) bool { return a.Name == "main" },
		Types: func(m v1alpha1.Mode) []string {
			return map[v1alpha1.Mode][]string{"": {"sim_network"}, v1alpha1.ModeData: {"sim_image"}, v1alpha1.ModeEphemeral: {"sim_token"}}[m]
		},
		Names: func(Address) []string { return []string{"main"} },
	}
}

func TestCheckReferencesOfEachMode(t *testing.T) {
	for expr, want := range map[string]string{
		`sim_network.main.disk.gb`:                 "",
		`sim_network.main.rule[0].port`:            "",
		`sim_network.main.rule[*].port`:            "",
		`sim_network.main.any.whatever[3].x`:       "",
		`sim_network.main.tags.whatever`:           "",
		`configmap.main.x`:                         "",
		`data.sim_image.main.id`:                   "",
		`sim_network.main.disk.gbb`:                `The attribute "disk" has no attribute "gbb". Did you mean "gb"?`,
		`sim_network.main.id.x`:                    `The attribute "id" is a string, which has no attribute "x". Remove the part after it.`,
		`sim_network.main.rule.port`:               `Name one element, as in [0].port, or all of them, as in [*].port.`,
		`sim_network.main.rule[0].prot`:            `An element of it has no attribute "prot". Did you mean "port"?`,
		`sim_network.main.set.a`:                   `Write [*].a for all elements`,
		`sim_image.main.id`:                        `There is no resource type "sim_image". There is a data source of the type: did you mean data.sim_image.main?`,
		`data.sim_network.main.id`:                 `There is no data source type "sim_network". There is a resource of the type: did you mean sim_network.main?`,
		`data.sim_imagee.main.id`:                  `There is no data source type "sim_imagee". Did you mean "sim_image"?`,
		`ephemeral.sim_tokn.main.id`:               `There is no ephemeral resource type "sim_tokn". Did you mean "sim_token"?`,
		`configmp.main.id`:                         `There is no resource type "configmp". Did you mean "configmap"?`,
		`data.sim_image.mian.id`:                   `There is no data-sim-image named "mian" in this namespace. Did you mean data.sim_image.main? Create it, or correct the reference to data.sim_image.mian.`,
		`configmap.mian.x`:                         `There is no ConfigMap named "mian" in this namespace. Did you mean configmap.main?`,
		`namespace.other.sim_network.mian.id`:      `There is no sim-network named "mian" in the namespace "other". Create it, or correct the reference to namespace.other.sim_network.mian.`,
		`namespace.other.data.sim_image["a.b"].id`: `correct the reference to namespace.other.data.sim_image["a.b"].`,
	} {
		e, diags := ParseExpression("${"+expr+"}", "v", ExpressionOptions{})
		if len(diags) > 0 {
			t.Errorf("%s: %+v", expr, diags)
			continue
		}
		got := ""
		if diags := CheckReferences(e.References(), catalogOf(nested())); len(diags) > 0 {
			got = diags[0].Detail
		}
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s\ngot  %s\nwant %s", expr, got, want)
		}
	}
}

func TestTypesAreCheckedBeforeValuesAreKnown(t *testing.T) {
	for js, want := range map[string]string{
		`{"name":"${sim_network.main.id}","size":"${sim_network.main.size}"}`: "",
		`{"name":"${sim_network.main.any}","size":"${sim_network.main.any}"}`: "",
		`{"name":"x","size":"${sim_network.main.id}"}`:                        "", // a string may hold a number
		`{"name":"x","tags":"${sim_network.main.tags}"}`:                      "",
		`{"name":"x","disk":"${sim_network.main.disk}"}`:                      "",
		`{"name":"x","rule":"${sim_network.main.rule}"}`:                      "",
		`{"name":"x","zones":"${[for r in sim_network.main.rule : r.port]}"}`: "",
		`{"name":"${sim_network.main.tags}"}`:                                 "spec.name: \"name\" needs a string, but its value is",
		`{"name":"${sim_network.main}"}`:                                      "spec.name: \"name\" needs a string, but its value is",
		`{"name":"a-${sim_network.main.tags}"}`:                               "spec.name, column 5: string required",
		`{"name":"x","size":"${sim_network.main.tags}"}`:                      "spec.size: \"size\" needs a number, but its value is a map of string",
		`{"name":"x","zones":"${sim_network.main.id}"}`:                       "spec.zones: \"zones\" needs a list of string, but its value is a string",
		`{"name":"x","disk":"${sim_network.main.id}"}`:                        "spec.disk: An object is needed here, not a string",
		`{"name":"x","rule":"${sim_network.main.tags.x}"}`:                    "spec.rule: A list of objects is needed here, not a string",
		`{"name":"x","rule":"${[sim_network.main.id]}"}`:                      "spec.rule[0]: An object is needed here, not a string",
		`{"name":"x","users":"${sim_network.main.rule}"}`:                     "spec.users: A map of objects is needed here",
		`{"name":"x","nics":"${sim_network.main.tags}"}`:                      "spec.nics: A list of objects is needed here",
		`{"name":"x","size":"${sim_network.main.tags + 1}"}`:                  "spec.size, column 3: number required",
		`{"name":"${upper(sim_network.main.rule)}"}`:                          "spec.name, column 9: string required",
		`{"name":"${one(sim_network.main.set).b}"}`:                           `spec.name, column 28: The value has no attribute "b". Did you mean "a"?`,
		`{"name":"${configmap.main.region[0]}"}`:                              "spec.name",
		`{"name":"x","zones":"${configmap.main.region}"}`:                     "spec.zones",
	} {
		c, diags := parseConfig(spec(t, js), schematest.Machine())
		if diag.HasErrors(diags) {
			if want == "" || !strings.HasPrefix(diags[0].Attribute+": "+diags[0].Detail, want) {
				t.Errorf("%s: %+v", js, diags)
			}
			continue
		}
		if diags := CheckReferences(c.References(), catalogOf(nested())); len(diags) > 0 {
			t.Errorf("%s: %+v", js, diags)
			continue
		}
		got := c.CheckTypes(catalogOf(nested()))
		at, what, _ := strings.Cut(want, ": ")
		switch {
		case want == "" && len(got) == 0:
		case want == "" || len(got) == 0 || got[0].Attribute != at && !strings.HasPrefix(got[0].Attribute, at+":") || !strings.Contains(got[0].Detail, what):
			t.Errorf("%s\ngot  %+v\nwant %s", js, got, want)
		}
	}
}

func TestEphemeralValuesEndInWriteOnlyArguments(t *testing.T) {
	b := schematest.Block(schematest.Optional("name", cty.String), schematest.WriteOnly(schematest.Optional("password_wo", cty.String)), schematest.Optional("password", cty.String), schematest.Optional("tags", cty.Map(cty.String)),
		schematest.Object(schematest.Optional("nics", cty.NilType), schema.NestingList, schematest.Optional("key", cty.String), schematest.WriteOnly(schematest.Optional("key_wo", cty.String))),
		schematest.NestedBlock("rule", schema.NestingList, schematest.Optional("v", cty.String), schematest.WriteOnly(schematest.Optional("v_wo", cty.String))))
	const token = `${ephemeral.sim_token.t.value}`
	for js, want := range map[string]string{
		`{"password_wo":"` + token + `"}`: "",
		`{"password_wo":"x-` + token + `","name":"${ephemeralasnull(ephemeral.sim_token.t.value)}"}`: "",
		`{"nics":[{"key_wo":"` + token + `","key":"a"}]}`:                                            "",
		`{"rule":[{"v_wo":"` + token + `"}]}`:                                                        "",
		`{"password":"` + token + `"}`:                                                               `spec.password: Use "password_wo" instead.`,
		`{"name":"` + token + `"}`:                                                                   `spec.name: "name" is stored`,
		`{"name":"${length(ephemeral.sim_token.t.value)}"}`:                                          `spec.name: "name" is stored`,
		`{"name":"${ephemeral.sim_token.t.value == \"a\" ? \"b\" : \"c\"}"}`:                         `spec.name: "name" is stored`,
		`{"tags":{"a":"` + token + `"}}`:                                                             `spec.tags: "tags" is stored`,
		`{"nics":[{"key":"` + token + `"}]}`:                                                         `spec.nics[0].key: "key" is stored`,
		`{"nics":"${[for t in [ephemeral.sim_token.t.value] : {key = t}]}"}`:                         `spec.nics[0].key: "key" is stored`,
		`{"rule":"${ephemeral.sim_token.t.value == \"a\" ? [] : [{v = \"a\"}]}"}`:                    `spec.rule: only write-only arguments may use it`,
	} {
		// Told when it is written, and again when the values are there.
		_, diags := parseConfig(spec(t, js), b)
		at, what, _ := strings.Cut(want, ": ")
		switch {
		case want == "" && len(diags) == 0:
		case want == "" || len(diags) == 0 || diags[0].Attribute != at || !strings.Contains(diags[0].Detail, what) || diags[0].Summary != summaryEphemeral:
			t.Errorf("%s\ngot  %+v\nwant %s", js, diags, want)
		}
		if _, diags := (ConfigOptions{Ephemeral: true}).Parse(spec(t, js), b); len(diags) > 0 {
			t.Errorf("%s: refused even in an ephemeral resource: %+v", js, diags)
		}
		// This scope marks values of all modes.
		c, _ := parseConfig(spec(t, strings.ReplaceAll(js, "ephemeral.sim_token", "sim_token")), b)
		_, diags = c.Evaluate(func(Address) (cty.Value, bool) {
			return schematest.Obj("value", schematest.Str("t0ken").Mark(Ephemeral)), true
		})
		if diag.HasErrors(diags) != (want != "") {
			t.Errorf("%s: when evaluated: %+v", js, diags)
		}
		for _, d := range diags {
			if strings.Contains(d.Detail, "t0ken") {
				t.Errorf("%s: a diagnostic has the value: %+v", js, d)
			}
		}
	}
}

func TestErrorsKeepSecrets(t *testing.T) {
	secrets := func(Address) (cty.Value, bool) {
		return schematest.Obj("json", schematest.Str(`{"s3cret":"s3cret","size":"s3cret"}`), "key", schematest.Str("s3cret"), "list", schematest.Str(`["s3cret"]`), "m", schematest.Obj("s3cret", schematest.Obj("x", schematest.Str("s3cret")))).Mark(Sensitive), true
	}
	for _, js := range []string{
		`{"name":"x","disk":"${jsondecode(secret.db.json)}"}`,
		`{"name":"x","rule":"${[jsondecode(secret.db.json)]}"}`,
		`{"name":"x","users":"${jsondecode(secret.db.json)}"}`,
		`{"name":"x","tags":"${jsondecode(secret.db.list)}"}`,
		`{"name":"x","tags":"${{for k, v in jsondecode(secret.db.json) : k => [v]}}"}`,
		`{"name":"x","strict":"${jsondecode(secret.db.json)}"}`,
		`{"name":"x","size":"${secret.db.key}"}`,
		`{"name":"${jsondecode(secret.db.key)}"}`,
		`{"name":"${regex(secret.db.key, 1)}"}`,
		`{"name":"${tomap({a = 1})[secret.db.key]}"}`,
		`{"name":"${lookup({a = 1}, secret.db.key)}"}`,
		`{"name":"${cidrsubnet(secret.db.key, 8, 1)}"}`,
		`{"name":"${[for s in [secret.db.key] : tonumber(s)][0]}"}`,
		`{"name":"${templatestring(secret.db.key, {})}${tonumber(secret.db.key)}"}`,
		`{"name":"${templatestring(\"$${tonumber(a)}\", {a = secret.db.key})}"}`,
		`{"name":"${try(tonumber(secret.db.key))}"}`,
		`{"name":"${format(secret.db.key, 1)}"}`,
		`{"name":"${secret.db.s3cre}"}`,
		`{"name":"${jsondecode(secret.db.json).s3cre}"}`,
		`{"name":"${jsondecode(secret.db.json)[\"s3cre\"]}"}`,
		`{"name":"${[for o in [jsondecode(secret.db.json)] : o.s3cre][0]}"}`,
		`{"name":"x","zones":"${[jsondecode(secret.db.json)][*].s3cre}"}`,
		`{"name":"${{(secret.db.key) = 1}.s3cre}"}`,
		`{"name":"${{for k, v in jsondecode(secret.db.json) : k => v}.s3cre}"}`,
		`{"name":"${jsondecode(secret.db.list)[7]}"}`,
	} {
		c, diags := parseConfig(spec(t, js), schematest.Machine())
		if diag.HasErrors(diags) {
			t.Errorf("%s: %+v", js, diags)
			continue
		}
		_, diags = c.Evaluate(secrets)
		if !diag.HasErrors(diags) {
			t.Errorf("%s is accepted", js)
		}
		for _, d := range diags {
			if strings.Contains(d.Attribute+d.Summary+d.Detail, "s3cret") {
				t.Errorf("%s: a diagnostic has the secret: %+v", js, d)
			}
		}
	}
}

func TestExpressions(t *testing.T) {
	self := schematest.Obj("id", schematest.Str("i-1"), "ip", schematest.UnknownStr, "password", schematest.Str("s3cret").Mark(Sensitive), "nothing", schematest.NullStr)
	own := &schema.Block{Attributes: []*schema.Attribute{
		{Name: "id", Type: cty.String, Computed: true}, {Name: "ip", Type: cty.String, Computed: true}, {Name: "nothing", Type: cty.String, Computed: true},
		{Name: "password", Type: cty.String, Computed: true, Sensitive: true}, {Name: "tags", Type: cty.Map(cty.String), Optional: true},
	}}
	condition := ExpressionOptions{Self: own, Type: cty.Bool}
	for name, tc := range map[string]struct {
		in      any
		options ExpressionOptions
		want    cty.Value
		err     string // part of "field: detail" when it is refused, be it at once or when it is evaluated
	}{
		"a condition that holds":             {`${self.id == "i-1"}`, condition, cty.True, ""},
		"a condition that may hold":          {`${self.ip == "1.2.3.4"}`, condition, cty.UnknownVal(cty.Bool), ""},
		"a condition on a secret keeps it":   {`${length(self.password) > 3}`, condition, cty.True.Mark(Sensitive), ""},
		"a condition on a reference":         {`${data.sim_image.base.id != ""}`, condition, cty.True, ""},
		"a condition on an ephemeral value":  {`${ephemeral.sim_token.t.value != ""}`, condition, cty.True.Mark(Ephemeral), ""},
		"a condition that is no template":    {true, condition, cty.True, ""},
		"text that says true":                {"true", condition, cty.True, ""},
		"a condition that is a number":       {`${1 + 1}`, condition, cty.NilVal, "c: The result must be a bool"},
		"a condition that is a list":         {[]any{true}, condition, cty.NilVal, "c: The result must be a bool"},
		"a condition that is null":           {`${self.nothing}`, condition, cty.NilVal, "c: The result is null"},
		"a condition that cannot be read":    {`${self.}`, condition, cty.NilVal, "c, column 8: "},
		"self is not for all":                {`${self.id == ""}`, ExpressionOptions{Type: cty.Bool}, cty.NilVal, "c, column 3: "},
		"a message":                          {`the id is ${self.id}`, ExpressionOptions{Self: own, Type: cty.String}, schematest.Str("the id is i-1"), ""},
		"the id of an import":                {`${configmap.app.region}/x`, ExpressionOptions{Type: cty.String}, schematest.Str("eu/x"), ""},
		"an identity":                        {map[string]any{"region": "${configmap.app.region}", "n": int64(1)}, ExpressionOptions{}, schematest.Obj("region", schematest.Str("eu"), "n", schematest.Num(1)), ""},
		"a missing object":                   {`${sim_network.nope.id}`, ExpressionOptions{}, cty.NilVal, `c, column 3: There is no sim-network named "nope"`},
		"self has no such attribute":         {`${1 > 0 && self.idd == "x"}`, condition, cty.NilVal, `c, column 16: self has no attribute "idd". Did you mean "id"?`},
		"self is a map where a bool belongs": {`${self.tags}`, condition, cty.NilVal, "c: The result must be a bool"},
		"self has no such function":          {`${lenght(self.id) > 1}`, condition, cty.NilVal, `c, column 3: There is no function "lenght". Did you mean "length"?`},
		"a secret in an error":               {`${tonumber(self.password)}`, ExpressionOptions{Self: own}, cty.NilVal, "c, column 12: The expression uses a sensitive value"},
	} {
		t.Run(name, func(t *testing.T) {
			e, diags := ParseExpression(tc.in, "c", tc.options)
			if e == nil {
				t.Fatal("no Expression")
			}
			var v cty.Value
			if !diag.HasErrors(diags) {
				v, diags = e.Evaluate(world, self)
			}
			if tc.err != "" {
				if !diag.HasErrors(diags) || !strings.Contains(diags[0].Attribute+": "+diags[0].Detail, tc.err) {
					t.Errorf("got %+v, want %s", diags, tc.err)
				}
				return
			}
			if len(diags) > 0 {
				t.Fatalf("got %+v", diags)
			}
			schematest.Same(t, unrefinedDeep(v), tc.want)
		})
	}
	_, diags := ParseExpression(`${self.disk.bg > 1}`, "c", ExpressionOptions{Self: nested(), Type: cty.Bool})
	if len(diags) != 1 || !strings.Contains(diags[0].Detail, `"bg"`) {
		t.Errorf("got %+v", diags)
	}
	e, diags := ParseExpression(`${sim_network.main.tags}`, "c", condition)
	if more := e.CheckTypes(catalogOf(nested())); len(diags) != 0 || len(more) != 1 || more[0].Summary != summaryWrongType {
		t.Errorf("got %+v, %+v", diags, more)
	}
}

func unrefinedDeep(v cty.Value) cty.Value {
	bare, marks := v.Unmark()
	if !bare.IsKnown() {
		bare = cty.UnknownVal(bare.Type())
	}
	return bare.WithMarks(marks)
}

func TestAddressesOfEachForm(t *testing.T) {
	const data = v1alpha1.ModeData
	for in, want := range map[string]Address{
		"data.sim_image.base":                     {Mode: data, Type: "sim_image", Name: "base"},
		"data.sim_image.a.b":                      {Mode: data, Type: "sim_image", Name: "a.b"},
		`data.sim_image["a.b"]`:                   {Mode: data, Type: "sim_image", Name: "a.b"},
		"data-sim-image/base":                     {Mode: data, Type: "sim_image", Name: "base"},
		"ephemeral.sim_token.t":                   {Mode: v1alpha1.ModeEphemeral, Type: "sim_token", Name: "t"},
		"ephemeral-sim-token/t":                   {Mode: v1alpha1.ModeEphemeral, Type: "sim_token", Name: "t"},
		"action.sim_reboot.now":                   {Mode: v1alpha1.ModeAction, Type: "sim_reboot", Name: "now"},
		"action-sim-reboot/now":                   {Mode: v1alpha1.ModeAction, Type: "sim_reboot", Name: "now"},
		"configmap.app":                           {Type: TypeConfigMap, Name: "app"},
		"ConfigMap/app":                           {Type: TypeConfigMap, Name: "app"},
		"secret/db":                               {Type: TypeSecret, Name: "db"},
		"namespace.shared.sim_network.main":       {Namespace: "shared", Type: "sim_network", Name: "main"},
		"namespace.1st.sim_network.main":          {Namespace: "1st", Type: "sim_network", Name: "main"},
		`namespace["1st"].data.sim_image["a.b"]`:  {Namespace: "1st", Mode: data, Type: "sim_image", Name: "a.b"},
		"namespace.shared.sim-network/main":       {Namespace: "shared", Type: "sim_network", Name: "main"},
		"namespace.shared.data-sim-image/my.name": {Namespace: "shared", Mode: data, Type: "sim_image", Name: "my.name"},
	} {
		got, err := ParseAddress(in)
		if err != nil || got != want {
			t.Errorf("%s: got %+v, %v", in, got, err)
		}
		for _, s := range []string{got.String(), got.Expression()} {
			if again, err := ParseAddress(s); err != nil || again != got {
				t.Errorf("%s: written as %s, read as %+v, %v", in, s, again, err)
			}
		}
	}
	for _, in := range []string{
		"data.sim_image", "data", "ephemeral.x", "namespace.shared", "namespace.shared.sim_network", "namespace.a_b.sim_a.b", "namespace..sim_a.b",
		"self.id", "var.x", "local.x", "each.key", "namespace.a.namespace.b.sim_a.c", "data.data.x", `sim_a["x"].y`, "Data-sim-image/x", "SIM-network/x",
	} {
		if got, err := ParseAddress(in); err == nil && in != "data.data.x" {
			t.Errorf("%q: got %+v", in, got)
		}
	}
	order := []Address{{Type: "b", Name: "a"}, {Type: "b", Name: "b"}, {Mode: data, Type: "a", Name: "a"}, {Namespace: "n", Type: "a", Name: "a"}}
	if got := slices.SortedFunc(slices.Values([]Address{order[3], order[1], order[2], order[0]}), Address.Compare); !slices.Equal(got, order) {
		t.Errorf("got %v", got)
	}
}
