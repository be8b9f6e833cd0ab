package kinds_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/schema"
)

func TestCreateRefusesWhatTheProviderWould(t *testing.T) {
	h := newFixture(t, sim())
	for reason, test := range map[string]struct {
		body string
		want []string // all of these stand in the message; none means that the object is accepted
	}{
		"all shapes": {body: network("ok", `{"name":"n","mtu":1500,"enabled":true,"tags":{"a":"b"},"dns":["x"],"zones":["y"],"point":{"x":1,"y":2},
			"endpoint":{"host":"h","port":1},"routes":{"r":{"via":"v"}},"rule":[{"port":1,"cidrs":["c"]}],"timeouts":{"create":"1m"},"anything":{"x":[1,"2"]}}`)},
		"numbers and booleans as strings": {body: network("ok", `{"name":"n","mtu":"1500","enabled":"true"}`)},
		"expressions for every type": {body: network("ok", `{"name":"${sim_network.a.id}","mtu":"${sim_network.a.mtu}","enabled":"${sim_network.a.enabled}",
			"tags":"${sim_network.a.tags}","dns":"${sim_network.a.dns}","zones":"${sim_network.a.zones}","point":"${sim_network.a.point}",
			"endpoint":"${sim_network.a.endpoint}","routes":"${sim_network.a.routes}","rule":"${sim_network.a.rule}","timeouts":"${sim_network.a.timeouts}"}`)},
		"null is not set":          {body: network("ok", `{"name":"n","mtu":null}`)},
		"generated name":           {body: `{"apiVersion":"sim.hykube.io/v1","kind":"sim-network","metadata":{"generateName":"net-"},"spec":{"name":"n"}}`},
		"no spec":                  {`{"apiVersion":"sim.hykube.io/v1","kind":"sim-network","metadata":{"name":"bad"}}`, []string{"spec.name: Required value"}},
		"required argument":        {network("bad", `{"mtu":1}`), []string{"spec.name: Required value", `"name"`}},
		"required in a block":      {network("bad", `{"name":"n","rule":[{"port":1},{"cidrs":[]}]}`), []string{"spec.rule[1].port: Required value"}},
		"required in an attribute": {network("bad", `{"name":"n","endpoint":{"port":1}}`), []string{"spec.endpoint.host: Required value"}},
		"required in a map":        {network("bad", `{"name":"n","routes":{"r":{}}}`), []string{"spec.routes.r.via: Required value"}},
		"number":                   {network("bad", `{"name":"n","mtu":"abc"}`), []string{`spec.mtu: Invalid value: "abc"`, "number"}},
		"number in a block":        {network("bad", `{"name":"n","rule":[{"port":"abc"}]}`), []string{`spec.rule[0].port: Invalid value: "abc"`, "number"}},
		"boolean":                  {network("bad", `{"name":"n","enabled":"maybe"}`), []string{`spec.enabled: Invalid value: "maybe"`, "bool"}},
		"map":                      {network("bad", `{"name":"n","tags":["a"]}`), []string{"spec.tags: Invalid value", "map"}},
		"list":                     {network("bad", `{"name":"n","dns":"a"}`), []string{`spec.dns: Invalid value: "a"`, "list"}},
		"block":                    {network("bad", `{"name":"n","rule":"a"}`), []string{"spec.rule: Invalid value"}},
		"too many blocks":          {network("bad", `{"name":"n","rule":[{"port":1},{"port":2},{"port":3},{"port":4}]}`), []string{"spec.rule", "3"}},
		"computed attribute":       {network("bad", `{"name":"n","id":"x"}`), []string{"spec.id: Forbidden", "provider"}},
		"computed in a block":      {network("bad", `{"name":"n","rule":[{"port":1,"hits":1}]}`), []string{"spec.rule[0].hits: Forbidden"}},
		"meta-argument in spec":    {network("bad", `{"name":"n","depends_on":["a"]}`), []string{`unknown field "spec.depends_on"`, "lifecycle.dependsOn"}},
		"broken expression":        {network("bad", `{"name":"a-${sim_network.x.}"}`), []string{"spec.name, column 19:"}},
		"expression of a string where a number is": {network("bad", `{"name":"n","mtu":"${upper(\"a\")}"}`), []string{"spec.mtu"}},
		"secret is not repeated":                   {network("bad", `{"name":"n","pin":"hunter2"}`), []string{"spec.pin: Invalid value", "number"}},
		"spec is a list":                           {network("bad", `[1]`), []string{"spec: Invalid value", "must be an object, got a list"}},
		"name":                                     {network("Not_A_Name", `{"name":"n"}`), []string{"metadata.name: Invalid value"}},
		"absurd name":                              {network(strings.Repeat("a", 300), `{"name":"n"}`), []string{"metadata.name"}},
		"other kind":                               {strings.Replace(network("bad", `{"name":"n"}`), `"sim-network"`, `"sim-subnet"`, 1), []string{"kind", "sim-network"}},
		"other version":                            {strings.Replace(network("bad", `{"name":"n"}`), `/v1"`, `/v2"`, 1), []string{"sim.hykube.io/v2"}},
		"other namespace":                          {strings.Replace(network("bad", `{"name":"n"}`), `"metadata":{`, `"metadata":{"namespace":"x",`, 1), []string{"namespace"}},
		"metadata of a wrong type":                 {strings.Replace(network("bad", `{"name":"n"}`), `"metadata":{`, `"metadata":{"labels":"x",`, 1), []string{"metadata"}},
		"label":                                    {strings.Replace(network("bad", `{"name":"n"}`), `"metadata":{`, `"metadata":{"labels":{"a b":"c"},`, 1), []string{"metadata.labels"}},
		"no JSON":                                  {`{"apiVersion":`, []string{"JSON"}},
	} {
		t.Run(reason, func(t *testing.T) {
			a := h.do(t, admin, http.MethodPost, networks+"?dryRun=All", test.body)
			if test.want == nil {
				if a.code != http.StatusCreated {
					t.Errorf("%d %s", a.code, a.message())
				}
				return
			}
			if a.code != http.StatusUnprocessableEntity && a.code != http.StatusBadRequest {
				t.Errorf("code %d %s", a.code, a.body)
			}
			for _, want := range test.want {
				if !strings.Contains(a.message(), want) {
					t.Errorf("%q is not in %q", want, a.message())
				}
			}
			if strings.Contains(a.message(), "hunter2") {
				t.Errorf("a secret is in %q", a.message())
			}
		})
	}
}

// A type that no provider has is refused where its provider is installed. Another type may come with a provider, and a
// ProviderConfig may be written later: whoever writes an object is warned.
func TestWriteLooksUpTypesAndProviderConfig(t *testing.T) {
	h := newFixture(t, sim())
	h.configs = map[string]string{"europe": "sim", "clock": "time"}
	near := `There is no resource type "sim_netwrok". Did you mean "sim_network"?`
	with := func(lifecycle string) string {
		return strings.Replace(network("x", `{"name":"n"}`), `"spec"`, `"lifecycle":`+lifecycle+`,"spec"`, 1)
	}
	for reason, test := range map[string]struct {
		body   string
		code   int
		wanted string
	}{
		"a known type":                   {network("x", `{"name":"${sim_network.a.id}"}`), 201, ""},
		"a mistyped type":                {network("x", `{"name":"${sim_netwrok.a.id}"}`), 422, "spec.name, column 3: Invalid value: " + near},
		"in dependsOn":                   {with(`{"dependsOn":["sim_netwrok.a"]}`), 422, "lifecycle.dependsOn[0]: Invalid value: " + near},
		"in replaceTriggeredBy":          {with(`{"replaceTriggeredBy":["sim_netwrok.a.id"]}`), 422, "lifecycle.replaceTriggeredBy[0]: Invalid value: " + near},
		"in a condition":                 {with(`{"preconditions":[{"condition":"${sim_netwrok.a.id != null}"}]}`), 422, near},
		"a data source that is none":     {network("x", `{"name":"${data.sim_network.a.id}"}`), 422, "did you mean sim_network.a?"},
		"of a provider to come":          {network("x", `{"name":"${aws_vpc.a.id}"}`), 201, `spec.name, column 3: There is no resource type \"aws_vpc\". Install the provider that has it, or correct the name.`},
		"a mistyped provider":            {network("x", `{"name":"${smi_network.a.id}"}`), 201, `Did you mean \"sim_network\"?`},
		"a ProviderConfig":               {with(`{"providerConfig":"europe"}`), 201, ""},
		"no such ProviderConfig":         {with(`{"providerConfig":"eurpoe"}`), 201, `lifecycle.providerConfig: there is no ProviderConfig \"eurpoe\" in the namespace \"default\" yet; did you mean \"europe\"?`},
		"that of another provider":       {with(`{"providerConfig":"clock"}`), 201, `lifecycle.providerConfig: \"clock\" configures the provider \"time\", not \"sim\"`},
		"another provider's is not near": {with(`{"providerConfig":"clokc"}`), 201, `in the namespace \"default\" yet"`},
	} {
		t.Run(reason, func(t *testing.T) {
			a := h.do(t, admin, http.MethodPost, networks+"?dryRun=All", test.body)
			said := a.message() + strings.Join(a.header.Values("Warning"), " ")
			if a.code != test.code || !strings.Contains(said, test.wanted) || test.wanted == "" && said != "" {
				t.Errorf("%d %s, want %d %s", a.code, said, test.code, test.wanted)
			}
		})
	}

	// An object from before the type disappeared can be changed, but cannot refer to further missing types.
	h.create(t, network("old", `{"name":"${aws_vpc.a.id}"}`))
	aws := sim()
	aws.Name, aws.Schema = "aws", &schema.Provider{Config: aws.Schema.Config}
	if err := h.kinds.Set(aws); err != nil {
		t.Fatal(err)
	}
	patch := func(spec string) answer {
		return h.do(t, admin, http.MethodPatch, networks+"/old", `{"spec":`+spec+`}`, "Content-Type: application/merge-patch+json")
	}
	if a := patch(`{"mtu":1}`); a.code != http.StatusOK {
		t.Errorf("%d %s", a.code, a.message())
	}
	if a := patch(`{"cidr":"${aws_subnet.a.id}"}`); a.code != http.StatusUnprocessableEntity || !strings.Contains(a.message(), "spec.cidr, column 3") {
		t.Errorf("%d %s", a.code, a.message())
	}
}

func TestFieldValidation(t *testing.T) {
	h := newFixture(t, sim())
	const top = `{"apiVersion":"sim.hykube.io/v1","kind":"sim-network","metadata":{"name":"x","foo":1},"mtu":2,"bar":3,"spec":{"name":"n"}}`
	const duplicate = `{"apiVersion":"sim.hykube.io/v1","kind":"sim-network","metadata":{"name":"x"},"spec":{"name":"n","name":"m"}}`
	const inSpec = `{"apiVersion":"sim.hykube.io/v1","kind":"sim-network","metadata":{"name":"x"},"spec":{"nmae":"n","name":"m","rule":[{"port":1,"bar":1}],"point":{"x":1,"y":2,"foo":3}}}`
	const inLifecycle = `{"apiVersion":"sim.hykube.io/v1","kind":"sim-network","metadata":{"name":"x"},"spec":{"name":"m"},"lifecycle":{"prevent_destroy":true}}`
	for reason, test := range map[string]struct {
		mode, body string
		code       int
		message    []string // stand in the message or, on success, in the warnings
	}{
		"strict refuses fields beside spec": {"Strict", top, 400, []string{"strict decoding error", `unknown field "bar"`, `unknown field "mtu" (did you mean "spec.mtu"?)`, `unknown field "metadata.foo"`}},
		"warn drops fields beside spec":     {"Warn", top, 201, []string{`unknown field \"bar\"`, `unknown field \"metadata.foo\"`}},
		"ignore drops fields beside spec":   {"Ignore", top, 201, nil},
		"strict refuses duplicates":         {"Strict", duplicate, 400, []string{"strict decoding error", `duplicate field "spec.name"`}},
		"warn about duplicates":             {"Warn", duplicate, 201, []string{`duplicate field \"spec.name\"`}},
		"strict refuses in spec":            {"Strict", inSpec, 400, []string{`strict decoding error: unknown field "spec.nmae" (did you mean "name"?)`, `unknown field "spec.rule[0].bar"`, `unknown field "spec.point.foo"`}},
		"warn drops in spec":                {"Warn", inSpec, 201, []string{`unknown field \"spec.nmae\" (did you mean \"name\"?)`, `unknown field \"spec.rule[0].bar\"`, `unknown field \"spec.point.foo\"`}},
		"ignore drops in spec":              {"Ignore", inSpec, 201, nil},
		"to warn is the default":            {"", inSpec, 201, []string{`unknown field \"spec.nmae\"`}},
		"strict refuses in lifecycle":       {"Strict", inLifecycle, 400, []string{`unknown field "lifecycle.prevent_destroy" (did you mean "lifecycle.preventDestroy"?)`}},
		"warn refuses in lifecycle":         {"Warn", inLifecycle, 422, []string{`lifecycle.prevent_destroy: Forbidden: unknown field "lifecycle.prevent_destroy" (did you mean "lifecycle.preventDestroy"?)`}},
		"ignore refuses in lifecycle":       {"Ignore", inLifecycle, 422, []string{`unknown field "lifecycle.prevent_destroy"`}},
		"what an expression gives stays":    {"Ignore", network("x", `{"name":"n","point":"${ {x = 1, y = 2, foo = 3} }"}`), 422, []string{`unknown field "spec.point.foo"`}},
		"no such mode":                      {"Maybe", top, 422, []string{"fieldValidation"}},
	} {
		t.Run(reason, func(t *testing.T) {
			a := h.do(t, admin, http.MethodPost, networks+"?dryRun=All&fieldValidation="+test.mode, test.body)
			if a.code != test.code {
				t.Errorf("code %d, want %d: %s", a.code, test.code, a.body)
			}
			said := a.message() + strings.Join(a.header.Values("Warning"), " ")
			for _, want := range test.message {
				if !strings.Contains(said, want) {
					t.Errorf("%q is not in %q", want, said)
				}
			}
			if a.code == 201 {
				for _, unknown := range []string{`"bar"`, `"foo"`, `"nmae"`, "f:nmae", "f:foo"} {
					if strings.Contains(string(a.body), unknown) {
						t.Errorf("%s was kept: %s", unknown, a.body)
					}
				}
			}
			if test.mode == "Ignore" && len(a.header.Values("Warning")) > 0 {
				t.Errorf("warned: %v", a.header.Values("Warning"))
			}
		})
	}
}

// Changes of an object are validated as its creation is, but for server-side apply, which drops nothing: neither does
// it for custom resources.
func TestFieldValidationOfChanges(t *testing.T) {
	h := newFixture(t, sim())
	created := h.create(t, network("main", `{"name":"n","password":"hunter2"}`))
	put := strings.Replace(network("main", `{"name":"n","nmae":"x"}`), `"name":"main"`, `"name":"main","resourceVersion":"`+created.GetResourceVersion()+`"`, 1)
	const inSpec, inMetadata = `unknown field "spec.nmae"`, `unknown field "metadata.foo"`
	for reason, test := range map[string]struct {
		typ, body, unknown string
		// codes of Strict, Warn and Ignore.
		strict, warn, ignore int
	}{
		"update":              {"", put, inSpec, 400, 200, 200},
		"merge patch":         {"application/merge-patch+json", `{"spec":{"nmae":"x"}}`, inSpec, 422, 200, 200},
		"merge of metadata":   {"application/merge-patch+json", `{"metadata":{"foo":"x"}}`, inMetadata, 422, 200, 200},
		"merge at the top":    {"application/merge-patch+json", `{"bar":1}`, `unknown field "bar"`, 422, 200, 200},
		"merge of lifecycle":  {"application/merge-patch+json", `{"lifecycle":{"bar":1}}`, `unknown field "lifecycle.bar"`, 422, 422, 422},
		"merge of duplicates": {"application/merge-patch+json", `{"spec":{"mtu":1,"mtu":2}}`, `duplicate field "spec.mtu"`, 422, 200, 200},
		"JSON patch":          {"application/json-patch+json", `[{"op":"add","path":"/spec/nmae","value":"x"}]`, inSpec, 422, 200, 200},
		"apply":               {"application/apply-patch+yaml", "apiVersion: sim.hykube.io/v1\nkind: sim-network\nspec: {name: n, nmae: x}", inSpec, 422, 422, 422},
		"apply of metadata":   {"application/apply-patch+yaml", "apiVersion: sim.hykube.io/v1\nkind: sim-network\nmetadata: {foo: 1}\nspec: {name: n}", inMetadata, 422, 422, 422},
		"apply at the top":    {"application/apply-patch+yaml", "apiVersion: sim.hykube.io/v1\nkind: sim-network\nbar: 1\nspec: {name: n}", `bar: Forbidden: unknown field "bar"`, 422, 422, 422},
		"apply of duplicates": {"application/apply-patch+yaml", "apiVersion: sim.hykube.io/v1\nkind: sim-network\nspec: {name: n, mtu: 1, mtu: 2}", `key "mtu" already set`, 400, 200, 200},
	} {
		t.Run(reason, func(t *testing.T) {
			for mode, code := range map[string]int{"Strict": test.strict, "Warn": test.warn, "Ignore": test.ignore} {
				method, path, header := http.MethodPatch, networks+"/main?fieldManager=t&dryRun=All&fieldValidation="+mode, "Content-Type: "+test.typ
				switch test.typ {
				case "":
					method, header = http.MethodPut, "Content-Type: application/json"
				case "application/apply-patch+yaml":
					path += "&force=true"
				}
				a := h.do(t, admin, method, path, test.body, header)
				if a.code != code {
					t.Errorf("%s: %d, want %d: %s", mode, a.code, code, a.message())
				}
				said := a.message() + strings.ReplaceAll(strings.Join(a.header.Values("Warning"), " "), `\"`, `"`)
				if told := strings.Contains(said, test.unknown); told != (mode != "Ignore" || code >= 400) {
					t.Errorf("%s says %q", mode, said)
				}
				if strings.Contains(said, "hunter2") || strings.Contains(said, "<nil>") {
					t.Errorf("%s says %q", mode, said)
				}
				if a.code == 200 && (strings.Contains(string(a.body), `"nmae"`) || strings.Contains(string(a.body), `"foo"`) || strings.Contains(string(a.body), "f:nmae")) {
					t.Errorf("%s: the unknown field was kept: %s", mode, a.body)
				}
			}
		})
	}
}

func TestDeprecatedArgumentIsWarnedOf(t *testing.T) {
	h := newFixture(t, sim())
	a := h.do(t, admin, http.MethodPost, networks, network("main", `{"name":"net","legacy":"x"}`))
	if w := strings.Join(a.header.Values("Warning"), " "); a.code != http.StatusCreated || !strings.Contains(w, "spec.legacy") {
		t.Errorf("%d, warnings %q", a.code, w)
	}
	a = h.do(t, admin, http.MethodPatch, networks+"/main", `{"metadata":{"labels":{"a":"b"}}}`, "Content-Type: application/merge-patch+json")
	if w := a.header.Values("Warning"); a.code != http.StatusOK || len(w) > 0 {
		t.Errorf("a change of labels: %d, warnings %q", a.code, w)
	}
}

func TestLargeObject(t *testing.T) {
	h := newFixture(t, sim())
	a := h.do(t, admin, http.MethodPost, networks, network("big", `{"name":"`+strings.Repeat("x", 2<<20)+`"}`))
	if a.code != http.StatusRequestEntityTooLarge || !strings.Contains(a.message(), "2097152") {
		t.Errorf("one large request: %d %s", a.code, a.message())
	}
	h.create(t, network("grows", `{"name":"n","tags":{"a":"`+strings.Repeat("x", 1500<<10)+`"}}`))
	a = h.do(t, admin, http.MethodPatch, networks+"/grows", `{"spec":{"tags":{"b":"`+strings.Repeat("x", 1500<<10)+`"}}}`, "Content-Type: application/merge-patch+json")
	if a.code != http.StatusRequestEntityTooLarge || !strings.Contains(a.message(), "grows") {
		t.Errorf("an object that grows: %d %.300s", a.code, a.message())
	}
}

// An upgraded provider may reject a stored object. Users must still be able to read and correct it.
func TestStaleObjectCanStillBeManaged(t *testing.T) {
	h := newFixture(t, sim())
	h.create(t, network("main", `{"name":"n","mtu":5}`))
	next := sim()
	block := &schema.Block{Blocks: next.Schema.Resources["sim_network"].Block.Blocks}
	for _, a := range sim().Schema.Resources["sim_network"].Block.Attributes {
		if a.Name != "mtu" {
			block.Attributes = append(block.Attributes, a)
		}
	}
	next.Schema.Resources["sim_network"].Block = block
	if err := h.kinds.Set(next); err != nil {
		t.Fatal(err)
	}
	patch := func(body string) answer {
		return h.do(t, admin, http.MethodPatch, networks+"/main", body, "Content-Type: application/merge-patch+json")
	}
	if a := patch(`{"metadata":{"labels":{"a":"b"}}}`); a.code != http.StatusOK {
		t.Errorf("label: %d %s", a.code, a.message())
	}
	if a := patch(`{"spec":{"cidr":"c"}}`); a.code != http.StatusUnprocessableEntity || !strings.Contains(a.message(), "spec.mtu") {
		t.Errorf("change of spec: %d %s", a.code, a.message())
	}
	// A patch that says nothing of the argument does not unset it, however tolerant the client is.
	a := h.do(t, admin, http.MethodPatch, networks+"/main?fieldValidation=Ignore", `{"spec":{"cidr":"c","other":1}}`, "Content-Type: application/merge-patch+json")
	if a.code != http.StatusUnprocessableEntity || !strings.Contains(a.message(), "spec.mtu") || strings.Contains(a.message(), "spec.other") {
		t.Errorf("tolerant change of spec: %d %s", a.code, a.message())
	}
	if a := patch(`{"spec":{"mtu":null}}`); a.code != http.StatusOK {
		t.Errorf("repair: %d %s", a.code, a.message())
	}
}

// Nonsense is the client's mistake, never the server's.
func TestMalformedRequestsAreRefused(t *testing.T) {
	h := newFixture(t, sim())
	h.create(t, network("main", `{"name":"net"}`))
	const head = `"apiVersion":"sim.hykube.io/v1","kind":"sim-network"`
	bodies := []string{
		`[]`, `"x"`, `null`, `1`, `{}`, `{"apiVersion":1,"kind":2}`, `{` + head + `}`, `{` + head + `,"metadata":null}`, `{` + head + `,"metadata":[]}`,
		`{` + head + `,"metadata":{"name":1}}`, `{` + head + `,"metadata":{"name":"main","labels":[]},"spec":{"name":"net"}}`,
		`{` + head + `,"metadata":{"name":"main","finalizers":"x"},"spec":{"name":"net"}}`,
		`{` + head + `,"metadata":{"name":"main","ownerReferences":[{}]},"spec":{"name":"net"}}`,
		`{` + head + `,"metadata":{"name":"main"},"spec":"x","lifecycle":"y","status":"z"}`,
		`{` + head + `,"metadata":{"name":"main"},"spec":{"name":["net"],"tags":{"a":{"b":1}},"rule":[[]],"endpoint":[1],"routes":1,"timeouts":[{}]}}`,
		`{` + head + `,"metadata":{"name":"main"},"spec":{"name":"` + strings.Repeat("${", 1000) + `"}}`,
		`{` + head + `,"metadata":{"name":"main"},"spec":{"anything":` + strings.Repeat("[", 500) + strings.Repeat("]", 500) + `,"name":"net"}}`,
		`{` + head + `,"metadata":{"name":"main"},"items":[],"spec":{"name":"net","mtu":1e400}}`,
	}
	for _, body := range bodies {
		for _, r := range []struct{ method, path, typ string }{
			{http.MethodPost, networks, "application/json"},
			{http.MethodPut, networks + "/main", "application/json"},
			{http.MethodPut, networks + "/main/status", "application/json"},
			{http.MethodPatch, networks + "/main?fieldManager=t", "application/merge-patch+json"},
			{http.MethodPatch, networks + "/main?fieldManager=t", "application/json-patch+json"},
			{http.MethodPatch, networks + "/main/status?fieldManager=t", "application/merge-patch+json"},
			{http.MethodPatch, networks + "/main?fieldManager=t&force=true", "application/apply-patch+yaml"},
			{http.MethodPatch, networks + "/new?fieldManager=t&force=true", "application/apply-patch+yaml"},
		} {
			path := r.path + "?dryRun=All"
			if strings.Contains(r.path, "?") {
				path = r.path + "&dryRun=All"
			}
			if a := h.do(t, admin, r.method, path, body, "Content-Type: "+r.typ); a.code >= 500 {
				t.Errorf("%s %s %s %.120s: %d %.300s", r.method, r.path, r.typ, body, a.code, a.message())
			}
		}
	}
}

// TestReferenceWarnings checks references of an object that no plan checks, such as those in the outputs of a stack.
func TestReferenceWarnings(t *testing.T) {
	h := newFixture(t, sim())
	for text, want := range map[string]string{
		"${sim_network.main.id}":                "",
		"${sim_network.main.tags.team}":         "",
		"${sim_network.main.anything.whatever}": "",
		"${sim_network.main.idd}":               "o, column 3",
		"${sim_netwrok.main.id}":                "o, column 3",
		"${aws_vpc.main.id}":                    "o, column 3", // no provider aws is installed
		"${data.sim_image.base.sizes}":          "o, column 3",
		"${secret.db.password}":                 "",
		"a ${[for n in sim_network.n : n.id]}":  "",
	} {
		refs, diags := lang.ExpressionOptions{Namespace: "default"}.References(text, "o")
		if len(diags) > 0 {
			t.Fatal(diags)
		}
		got := strings.Join(h.kinds.ReferenceWarnings("default", refs), "\n")
		if field, _, _ := strings.Cut(got, ":"); field != want {
			t.Errorf("%s: %q, want a warning about %q", text, got, want)
		}
	}
}
