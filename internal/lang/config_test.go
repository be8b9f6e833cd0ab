package lang

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/schema"
	"github.com/hykube/hykube/internal/schema/schematest"
)

// spec reads a spec as the API server hands it over, numbers as json.Number.
func spec(t testing.TB, js string) map[string]any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(js))
	d.UseNumber()
	var out map[string]any
	if err := d.Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

func network() cty.Value {
	return schematest.Obj("id", schematest.Str("net-1"), "count", schematest.Num(3), "name", schematest.UnknownStr, "secret", schematest.Str("s3cret").Mark(Sensitive),
		"zones", cty.ListVal([]cty.Value{schematest.Str("a"), schematest.Str("b")}), "up", cty.True, "nothing", schematest.NullStr)
}

func scope(a Address) (cty.Value, bool) {
	switch a.String() {
	case "sim_network.main", "sim_network.my.name", "sim_network.with-dash":
		return network(), true
	}
	return cty.NilVal, false
}

func TestEvaluate(t *testing.T) {
	for name, tc := range map[string]struct {
		spec string
		path string // the attribute to look at
		want cty.Value
	}{
		"a string is itself":                                    {`{"name":"x"}`, "name", schematest.Str("x")},
		"numbers convert to strings as in Terraform":            {`{"name":12.5}`, "name", schematest.Str("12.5")},
		"strings convert to numbers":                            {`{"name":"x","size":"0.1"}`, "size", cty.MustParseNumberVal("0.1")},
		"numbers keep every digit":                              {`{"name":"x","size":1152921504606846977}`, "size", cty.MustParseNumberVal("1152921504606846977")},
		"strings convert to booleans":                           {`{"name":"x","on":"true"}`, "on", cty.True},
		"a template of one interpolation keeps its type":        {`{"name":"x","size":"${sim_network.main.count}"}`, "size", schematest.Num(3)},
		"a template of several parts is a string":               {`{"name":"a-${sim_network.main.id}-${sim_network.main.count}"}`, "name", schematest.Str("a-net-1-3")},
		"a template may stand for a boolean":                    {`{"name":"x","on":"${sim_network.main.up}"}`, "on", cty.True},
		"a template may stand for a list":                       {`{"name":"x","zones":"${sim_network.main.zones}"}`, "zones", cty.ListVal([]cty.Value{schematest.Str("a"), schematest.Str("b")})},
		"a template may stand in a list":                        {`{"name":"x","zones":["z","${sim_network.main.zones[1]}"]}`, "zones", cty.ListVal([]cty.Value{schematest.Str("z"), schematest.Str("b")})},
		"a template may stand in a map":                         {`{"name":"x","tags":{"n":"${sim_network.main.id}"}}`, "tags", cty.MapVal(map[string]cty.Value{"n": schematest.Str("net-1")})},
		"a template may stand for a map":                        {`{"name":"x","tags":"${{for z in sim_network.main.zones : z => upper(z)}}"}`, "tags", cty.MapVal(map[string]cty.Value{"a": schematest.Str("A"), "b": schematest.Str("B")})},
		"a template may stand for blocks":                       {`{"name":"x","rule":"${[for z in [1,2] : {port = z}]}"}`, "rule", cty.ListVal([]cty.Value{schematest.Obj("port", schematest.Num(1), "inner", noInner), schematest.Obj("port", schematest.Num(2), "inner", noInner)})},
		"a template may stand for a nested attribute":           {`{"name":"x","disk":"${{gb = sim_network.main.count}}"}`, "disk", schematest.Obj("gb", schematest.Num(3), "kind", schematest.NullStr, "serial", schematest.NullStr)},
		"$${ is a literal ${":                                   {`{"name":"$${sim_network.main.id}"}`, "name", schematest.Str("${sim_network.main.id}")},
		"a name with dots goes into brackets":                   {`{"name":"${sim_network[\"my.name\"].id}"}`, "name", schematest.Str("net-1")},
		"a name with dashes is an identifier":                   {`{"name":"${sim_network.with-dash.id}"}`, "name", schematest.Str("net-1")},
		"unknown values stay unknown and take the type":         {`{"name":"x","size":"${sim_network.main.name}"}`, "size", cty.UnknownVal(cty.Number)},
		"unknown values make unknown templates":                 {`{"name":"x","ip":"${sim_network.main.name}"}`, "ip", schematest.UnknownStr},
		"secrets mark what is made of them":                     {`{"name":"p-${sim_network.main.secret}"}`, "name", schematest.Str("p-s3cret").Mark(Sensitive)},
		"secrets in a set mark the set":                         {`{"name":"x","mount":[{"path":"${sim_network.main.secret}"}]}`, "mount", cty.SetVal([]cty.Value{schematest.Obj("path", schematest.Str("s3cret"))}).Mark(Sensitive)},
		"null is null":                                          {`{"name":"x","size":null}`, "size", cty.NullVal(cty.Number)},
		"null by reference is null":                             {`{"name":"x","ip":"${sim_network.main.nothing}"}`, "ip", schematest.NullStr},
		"what is not set is null":                               {`{"name":"x"}`, "id", schematest.NullStr},
		"a set forgets order and doubles":                       {`{"name":"x","ports":[2,1,"2"]}`, "ports", cty.SetVal([]cty.Value{schematest.Num(1), schematest.Num(2)})},
		"a dynamic attribute takes the type that is written":    {`{"name":"x","any":{"a":[1,"b"]}}`, "any", schematest.Obj("a", cty.TupleVal([]cty.Value{schematest.Num(1), schematest.Str("b")}))},
		"objects in a list may omit fields, as blocks do":       {`{"name":"x","legacy":[{"a":"1"}]}`, "legacy", cty.ListVal([]cty.Value{schematest.Obj("a", schematest.Str("1"), "b", cty.NullVal(cty.Number))})},
		"an absent single block is null":                        {`{"name":"x"}`, "timeouts", cty.NullVal(cty.Object(map[string]cty.Type{"create": cty.String}))},
		"an absent group block is there, empty":                 {`{"name":"x"}`, "boot", schematest.Obj("order", cty.NullVal(cty.Number))},
		"an absent list block is empty":                         {`{"name":"x"}`, "rule", cty.ListValEmpty(cty.Object(map[string]cty.Type{"port": cty.Number, "inner": noInner.Type()}))},
		"an absent set block is empty":                          {`{"name":"x"}`, "mount", cty.SetValEmpty(cty.Object(map[string]cty.Type{"path": cty.String}))},
		"an absent map block is empty":                          {`{"name":"x"}`, "label", cty.MapValEmpty(cty.Object(map[string]cty.Type{"v": cty.String}))},
		"an absent list of dynamic blocks is an empty tuple":    {`{"name":"x"}`, "free", cty.EmptyTupleVal},
		"dynamic blocks are a tuple":                            {`{"name":"x","free":[{"v":1},{"v":"s"}]}`, "free", cty.TupleVal([]cty.Value{schematest.Obj("v", schematest.Num(1)), schematest.Obj("v", schematest.Str("s"))})},
		"one block needs no list, as in .tf.json":               {`{"name":"x","rule":{"port":"80"}}`, "rule", cty.ListVal([]cty.Value{schematest.Obj("port", schematest.Num(80), "inner", noInner)})},
		"a single block may have a list around it":              {`{"name":"x","timeouts":[{"create":"1m"}]}`, "timeouts", schematest.Obj("create", schematest.Str("1m"))},
		"map blocks keep their keys":                            {`{"name":"x","label":{"a":{"v":"1"}}}`, "label", cty.MapVal(map[string]cty.Value{"a": schematest.Obj("v", schematest.Str("1"))})},
		"nested attributes in a map":                            {`{"name":"x","users":{"root":{"uid":"0"}}}`, "users", cty.MapVal(map[string]cty.Value{"root": schematest.Obj("uid", schematest.Num(0))})},
		"an unknown block collection is unknown":                {`{"name":"x","rule":"${sim_network.main.name == \"a\" ? [] : [{port=1}]}"}`, "rule", cty.UnknownVal(cty.List(cty.Object(map[string]cty.Type{"port": cty.Number, "inner": noInner.Type()})))},
		"try falls back":                                        {`{"name":"${try(sim_network.main.nope, \"d\")}"}`, "name", schematest.Str("d")},
		"Terraform's coalesce skips empty strings":              {`{"name":"${coalesce(\"\", sim_network.main.nothing, \"c\")}"}`, "name", schematest.Str("c")},
		"for and if directives work":                            {`{"name":"%{ for z in sim_network.main.zones }${z}%{ endfor }"}`, "name", schematest.Str("ab")},
		"functions see the types of JSON":                       {`{"name":"${jsonencode({a = [1, true, null]})}"}`, "name", schematest.Str(`{"a":[1,true,null]}`)},
		"lookup without a default takes what is there":          {`{"name":"${lookup({a = \"b\"}, \"a\")}"}`, "name", schematest.Str("b")},
		"length counts characters, and elements":                {`{"name":"x","size":"${length(\"äö\") + length(sim_network.main.zones) + length({a=1})}"}`, "size", schematest.Num(5)},
		"replace takes expressions in slashes":                  {`{"name":"${replace(\"a1b2\", \"/[0-9]/\", \"-\")}"}`, "name", schematest.Str("a-b-")},
		"base64 and digests":                                    {`{"name":"${base64decode(base64encode(\"x\"))}${md5(\"x\")}"}`, "name", schematest.Str("x9dd4e461268c8034f5c8564e155c67a6")},
		"merge, keys, join":                                     {`{"name":"${join(\",\", keys(merge({b=1},{a=2})))}"}`, "name", schematest.Str("a,b")},
		"nonsensitive takes the mark away":                      {`{"name":"${nonsensitive(sim_network.main.secret)}"}`, "name", schematest.Str("s3cret")},
		"a conditional that needs no reference":                 {`{"name":"${1 > 2 ? \"a\" : \"b\"}"}`, "name", schematest.Str("b")},
		"splat over a list attribute":                           {`{"name":"x","zones":"${[for z in sim_network.main.zones[*] : z]}"}`, "zones", cty.ListVal([]cty.Value{schematest.Str("a"), schematest.Str("b")})},
		"a sensitive condition marks the result":                {`{"name":"${sim_network.main.secret == \"a\" ? \"x\" : \"y\"}"}`, "name", schematest.Str("y").Mark(Sensitive)},
		"nested set attributes":                                 {`{"name":"x","keys":[{"pub":"a"},{"pub":"a"}]}`, "keys", cty.SetVal([]cty.Value{schematest.Obj("pub", schematest.Str("a"))})},
		"a set of unknown elements keeps them":                  {`{"name":"x","keys":[{"pub":"${sim_network.main.name}"}]}`, "keys", cty.SetVal([]cty.Value{schematest.Obj("pub", schematest.UnknownStr)})},
		"an integer beyond int64 keeps its digits in a dynamic": {`{"name":"x","any":123456789012345678901234567890}`, "any", cty.MustParseNumberVal("123456789012345678901234567890")},
	} {
		t.Run(name, func(t *testing.T) {
			c, diags := parseConfig(spec(t, tc.spec), schematest.Machine())
			if len(diags) > 0 {
				t.Fatalf("parse: %v", diags)
			}
			v, diags := c.Evaluate(scope)
			if len(diags) > 0 {
				t.Fatalf("evaluate: %v", diags)
			}
			schematest.Same(t, v.GetAttr(tc.path), tc.want)
			bare, _ := v.UnmarkDeep()
			if errs := bare.Type().TestConformance(schematest.Machine().ImpliedType()); len(errs) > 0 {
				t.Errorf("does not conform to the schema: %v", errs)
			}
			again, _ := c.Evaluate(scope)
			schematest.Same(t, again, v)
		})
	}
}

var noInner = cty.SetValEmpty(cty.Object(map[string]cty.Type{"x": cty.String}))

func TestParseConfigRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		spec string
		want []string // "attribute: summary: part of the detail"
	}{
		"unknown field, with a near name":            {`{"name":"x","sise":1}`, []string{`spec.sise: Unknown field: Did you mean "size"?`}},
		"unknown field in a block":                   {`{"name":"x","rule":[{"port":1,"prot":2}]}`, []string{`spec.rule[0].prot: Unknown field: Did you mean "port"?`}},
		"unknown field in an object type":            {`{"name":"x","legacy":[{"A":"1"}]}`, []string{`spec.legacy[0].A: Unknown field: Did you mean "a"?`}},
		"unknown field in a nested attribute":        {`{"name":"x","disk":{"gb":1,"kin":"a"}}`, []string{`spec.disk.kin: Unknown field: Did you mean "kind"?`}},
		"a meta-argument has its own place":          {`{"name":"x","depends_on":[]}`, []string{`spec.depends_on: Unknown field: lifecycle.dependsOn`}},
		"missing argument":                           {`{}`, []string{`spec.name: Missing required argument: Add it`}},
		"null is missing, too":                       {`{"name":null}`, []string{`spec.name: Missing required argument: null`}},
		"missing argument in a block":                {`{"name":"x","rule":[{"port":1},{}]}`, []string{`spec.rule[1].port: Missing required argument: "port"`}},
		"missing argument in a nested attribute":     {`{"name":"x","disk":{}}`, []string{`spec.disk.gb: Missing required argument: "gb"`}},
		"computed-only":                              {`{"name":"x","id":"a"}`, []string{`spec.id: Value for a read-only attribute: Remove it`}},
		"computed-only in a nested attribute":        {`{"name":"x","disk":{"gb":1,"serial":"s"}}`, []string{`spec.disk.serial: Value for a read-only attribute: Remove it`}},
		"wrong type":                                 {`{"name":"x","size":"big"}`, []string{`spec.size: Incorrect value type: "size" needs a number, but its value is a string that is not a number`}},
		"wrong type in a map":                        {`{"name":"x","tags":{"a":[1]}}`, []string{`spec.tags: Incorrect value type: "tags" needs`}},
		"wrong type in a set":                        {`{"name":"x","ports":[1,"x"]}`, []string{`spec.ports[1]: Incorrect value type: ports[1] needs a number, but its value is a string that is not a number`}},
		"a string where a map is needed":             {`{"name":"x","tags":"a"}`, []string{`spec.tags: Incorrect value type: map`}},
		"a string where blocks are needed":           {`{"name":"x","rule":"a"}`, []string{`spec.rule: Incorrect value type: A list of objects is needed here, not a string`}},
		"a string where an object is needed":         {`{"name":"x","disk":"a"}`, []string{`spec.disk: Incorrect value type: An object is needed here, not a string`}},
		"an object type wants all its fields":        {`{"name":"x","strict":{"a":"1"}}`, []string{`spec.strict: Incorrect value type: "b" is required`}},
		"a null block":                               {`{"name":"x","rule":[null]}`, []string{`spec.rule[0]: Missing block: null`}},
		"several mistakes":                           {`{"size":"big","id":"a"}`, []string{`spec.id: Value for a read-only attribute: `, `spec.name: Missing required argument: `, `spec.size: Incorrect value type: `}},
		"a broken template":                          {`{"name":"a${sim_network."}`, []string{`spec.name, column 16: Invalid attribute name: $${`}},
		"a broken template on its second line":       {`{"name":"a\nb ${1 +}"}`, []string{`spec.name, line 2, column 8: Invalid expression: $${`}},
		"an unknown function, with a near name":      {`{"name":"${uper(\"a\")}"}`, []string{`spec.name, column 3: Call to unknown function: upper`}},
		"a word that is no reference":                {`{"name":"${HOME}"}`, []string{`spec.name, column 3: Invalid reference: HOME`}},
		"a type without a name":                      {`{"name":"${home}"}`, []string{`spec.name, column 3: Invalid reference: write $${home}`}},
		"a kind instead of a type":                   {`{"name":"${sim-network.main.id}"}`, []string{`spec.name, column 3: Invalid reference: write sim_network instead`}},
		"a variable of Terraform's":                  {`{"name":"${var.x}"}`, []string{`spec.name, column 3: Unsupported reference: input variables`}},
		"an index that is not written out":           {`{"name":"${sim_network[1].id}"}`, []string{`spec.name, column 3: Invalid reference: must be followed by the name`}},
		"too deep":                                   {`{"name":"${` + strings.Repeat("(", 300) + `1` + strings.Repeat(")", 300) + `}"}`, []string{`spec.name: Template too large: nest`}},
		"too large":                                  {`{"name":"${1}` + strings.Repeat("x", 1<<18) + `"}`, []string{`spec.name: Template too large: KiB`}},
		"an absurd number":                           {`{"name":"x","size":1e999999999}`, []string{`spec.size: Invalid number: out of range`}},
		"an absurd number in a template":             {`{"name":"${1e999999}"}`, []string{`spec.name, column 3: Invalid number: out of range`}},
		"an absurd width":                            {`{"name":"${format(\"%999999999d\", 1)}"}`, []string{`spec.name, column 11: Invalid function argument: width`}},
		"a conversion that fails within an element":  {`{"name":"x","legacy":[{"a":"1","b":"x"}]}`, []string{`spec.legacy[0].b: Incorrect value type: number`}},
		"a constant expression of the wrong type":    {`{"name":"x","size":"${upper(\"a\")}"}`, []string{`spec.size: Incorrect value type: number`}},
		"a key that is no identifier is in brackets": {`{"name":"x","tags":{"a b":{}}}`, []string{`spec.tags: Incorrect value type: string`}},
	} {
		t.Run(name, func(t *testing.T) {
			c, diags := parseConfig(spec(t, tc.spec), schematest.Machine())
			if c == nil {
				t.Fatal("no Config")
			}
			if len(diags) != len(tc.want) {
				t.Fatalf("got %d diagnostics, want %d: %+v", len(diags), len(tc.want), diags)
			}
			for i, want := range tc.want {
				part := strings.SplitN(want, ": ", 3)
				d := diags[i]
				if d.Attribute != part[0] || d.Summary != part[1] || !strings.Contains(d.Detail, part[2]) {
					t.Errorf("got  %s: %s: %s\nwant %s", d.Attribute, d.Summary, d.Detail, want)
				}
			}
			if !diag.HasErrors(diags) {
				t.Error("none is an error")
			}
		})
	}
}

func TestBlockCounts(t *testing.T) {
	b := schematest.Block(&schema.NestedBlock{TypeName: "rule", Nesting: schema.NestingList, Block: schematest.Block(schematest.Optional("a", cty.String)), MinItems: 1, MaxItems: 2})
	for js, want := range map[string]string{
		`{}`:                      "Missing required block",
		`{"rule":[]}`:             "Too few blocks",
		`{"rule":[{}]}`:           "",
		`{"rule":[{},{},{}]}`:     "Too many blocks",
		`{"rule":"${sim_a.b.c}"}`: "",
	} {
		_, diags := parseConfig(spec(t, js), b)
		got := ""
		if len(diags) > 0 {
			got = diags[0].Summary
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", js, got, want)
		}
	}
}

func TestEvaluateErrors(t *testing.T) {
	for name, tc := range map[string]struct{ spec, attribute, summary, detail string }{
		"a missing resource":            {`{"name":"${sim_network.nope.id}"}`, "spec.name, column 3", "Reference to a missing resource", `sim-network named "nope"`},
		"a missing attribute":           {`{"name":"a${sim_network.main.nope}"}`, "spec.name, column 20", "Unsupported attribute", "nope"},
		"required, but null":            {`{"name":"${sim_network.main.nothing}"}`, "spec.name", "Missing required argument", "null"},
		"wrong type":                    {`{"name":"x","size":"${sim_network.main.id}"}`, "spec.size", "Incorrect value type", "number"},
		"secrets are not in an error":   {`{"name":"${parseint(sim_network.main.secret, 10)}"}`, "spec.name, column 12", "Invalid function argument", "sensitive value"},
		"null in a template of strings": {`{"name":"a-${sim_network.main.nothing}"}`, "spec.name, column 5", "Invalid template interpolation value", "null"},
	} {
		t.Run(name, func(t *testing.T) {
			c, diags := parseConfig(spec(t, tc.spec), schematest.Machine())
			if diag.HasErrors(diags) {
				t.Fatal(diags)
			}
			_, diags = c.Evaluate(scope)
			if len(diags) != 1 {
				t.Fatalf("want one diagnostic, got %+v", diags)
			}
			d := diags[0]
			if d.Attribute != tc.attribute || d.Summary != tc.summary || !strings.Contains(d.Detail, tc.detail) || strings.Contains(d.Detail, "s3cret") {
				t.Errorf("got %+v\nwant %+v", d, tc)
			}
		})
	}
}

func TestReferences(t *testing.T) {
	c, diags := parseConfig(spec(t, `{
		"name": "${sim_network.main.id}${sim_subnet[\"a.b\"].cidr}",
		"tags": {"x": "${sim_network.main}", "a b": "${sim_disk.d.parts[0].size}"},
		"zones": ["${join(\",\", [for s in sim_network.other.zones : s])}"]
	}`), schematest.Machine())
	if len(diags) > 0 {
		t.Fatal(diags)
	}
	want := []Reference{
		{Address: Address{Type: "sim_network", Name: "main"}, Attribute: "id", Field: "spec.name, column 3"},
		{Address: Address{Type: "sim_subnet", Name: "a.b"}, Attribute: "cidr", Field: "spec.name, column 25"},
		{Address: Address{Type: "sim_disk", Name: "d"}, Attribute: "parts", Field: `spec.tags["a b"], column 3`},
		{Address: Address{Type: "sim_network", Name: "main"}, Attribute: "", Field: "spec.tags.x, column 3"},
		{Address: Address{Type: "sim_network", Name: "other"}, Attribute: "zones", Field: "spec.zones[0], column 23"},
	}
	if diff := cmp.Diff(want, c.References(), cmpopts.IgnoreUnexported(Reference{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]Address{{Type: "sim_disk", Name: "d"}, {Type: "sim_network", Name: "main"}, {Type: "sim_network", Name: "other"}, {Type: "sim_subnet", Name: "a.b"}}, c.Addresses()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestCheckReferences(t *testing.T) {
	in := Catalog{
		Block: func(a Address) *schema.Block {
			if a.Type == "sim_network" {
				return schematest.Block(schematest.Computed("id", cty.String), schematest.NestedBlock("rule", schema.NestingList))
			}
			return nil
		},
		Exists: func(a Address) bool { return a.Name == "main" },
		Types:  func(v1alpha1.Mode) []string { return []string{"sim_disk", "sim_network"} },
		Names:  func(Address) []string { return []string{"main"} },
	}
	for js, want := range map[string]string{
		`{"name":"${sim_network.main.id}"}`:    "",
		`{"name":"${sim_network.main.rule}"}`:  "",
		`{"name":"${sim_netwrok.main.id}"}`:    `spec.name, column 3: There is no resource type "sim_netwrok". Did you mean "sim_network"?`,
		`{"name":"${aws_vpc.main.id}"}`:        `spec.name, column 3: There is no resource type "aws_vpc". Install the provider that has it, or correct the name.`,
		`{"name":"${sim_network.mian.id}"}`:    `spec.name, column 3: There is no sim-network named "mian" in this namespace. Did you mean sim_network.main? Create it, or correct the reference to sim_network.mian.`,
		`{"name":"${sim_network.main.ib}"}`:    `spec.name, column 3: A sim-network has no attribute "ib". Did you mean "id"?`,
		`{"name":"${sim_network.main.owner}"}`: `spec.name, column 3: A sim-network has no attribute "owner". See kubectl explain sim-network.status.attributes.`,
	} {
		c, _ := parseConfig(spec(t, js), schematest.Machine())
		got := ""
		if diags := CheckReferences(c.References(), in); len(diags) > 0 {
			got = diags[0].Attribute + ": " + diags[0].Detail
		}
		if got != want {
			t.Errorf("%s\ngot  %s\nwant %s", js, got, want)
		}
	}
}

func TestDeprecationWarnings(t *testing.T) {
	a := schematest.Optional("old", cty.String)
	a.Deprecated, a.Description = true, "Use new instead."
	c, diags := parseConfig(map[string]any{"old": "x"}, schematest.Block(a))
	if len(diags) != 1 || diag.HasErrors(diags) || !strings.Contains(diags[0].Detail, "Use new instead.") {
		t.Errorf("got %+v", diags)
	}
	if _, diags := c.Evaluate(nil); len(diags) > 0 {
		t.Errorf("the warning occurs twice: %+v", diags)
	}
}

func TestAddress(t *testing.T) {
	for in, want := range map[string]Address{
		"sim_network.main":       {Type: "sim_network", Name: "main"},
		"sim_network.my.name":    {Type: "sim_network", Name: "my.name"},
		`sim_network["my.name"]`: {Type: "sim_network", Name: "my.name"},
		"sim-network/main":       {Type: "sim_network", Name: "main"},
		"sim-network/my.name":    {Type: "sim_network", Name: "my.name"},
	} {
		if got, err := ParseAddress(in); err != nil || got != want {
			t.Errorf("%s: got %v, %v", in, got, err)
		}
	}
	for _, in := range []string{"", ".", "a", "a.", ".a", "/", "a/", "A.b", "a.B", "a b.c", `a["b]`, "a.b/c", "a.-b", "1a.b", "a." + strings.Repeat("b", 254)} {
		if got, err := ParseAddress(in); err == nil || !strings.Contains(err.Error(), "sim_network.main") {
			t.Errorf("%q: got %v, %v", in, got, err)
		}
	}
	if got := (Address{Type: "sim_a", Name: "x.y"}).Expression(); got != `sim_a["x.y"]` {
		t.Error(got)
	}
}

// parseConfig reads a spec that may call the functions of providers.
func parseConfig(spec map[string]any, block *schema.Block, fns ...Functions) (*Config, diag.Diagnostics) {
	all := Functions{}
	for _, f := range fns {
		maps.Copy(all, f)
	}
	return ConfigOptions{Functions: all}.Parse(spec, block)
}
