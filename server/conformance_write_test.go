package server_test

import (
	"fmt"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// rules are the rules that apply to each kind with the verbs.
var rules = []struct {
	name  string
	verbs []string
	check func(c *conformance)
}{
	{"content types", []string{"create"}, (*conformance).contentTypes},
	{"content types of changes", []string{"create", "update", "patch"}, (*conformance).contentTypesOfChanges},
	{"answers", []string{"create", "get", "list"}, (*conformance).answers},
	{"names", []string{"create", "get"}, (*conformance).names},
	{"conflicts", []string{"create", "update", "patch"}, (*conformance).conflicts},
	{"apply", []string{"create", "patch"}, (*conformance).apply},
	{"preconditions", []string{"create", "delete", "get"}, (*conformance).preconditions},
	{"propagation policies", []string{"create", "delete", "get"}, (*conformance).propagation},
	{"dry run", []string{"create", "update", "patch", "delete", "get"}, (*conformance).dryRun},
	{"field validation", []string{"create", "update", "patch"}, (*conformance).fieldValidation},
	{"scope", []string{"create", "list"}, (*conformance).scope},
	{"subresources", []string{"create", "get"}, (*conformance).subresourcesOf},
	{"selectors", []string{"create", "list"}, (*conformance).selectors},
	{"pages", []string{"create", "list"}, (*conformance).pages},
	{"delete collection", []string{"create", "list", "deletecollection"}, (*conformance).deleteCollection},
	{"watch", []string{"create", "list", "watch", "patch", "delete"}, (*conformance).watch},
	{"watch list", []string{"create", "list", "watch"}, (*conformance).watchList},
}

// unknownTypes are encodings that no kind has.
var unknownTypes = []string{"application/cbor", "text/plain", "application/xml", "application/octet-stream", "nonsense"}

func (c *conformance) contentTypes() {
	create := c.all() + "?dryRun=All"
	if !c.kind.has("get") {
		// For kinds that are never stored, such as a review, it checks only the encodings.
		for _, typ := range unknownTypes {
			c.want(http.StatusUnsupportedMediaType, http.MethodPost, c.all(), c.manifest(""), "Content-Type: "+typ)
		}
		return
	}
	c.want(http.StatusCreated, http.MethodPost, create, c.manifest(""))
	c.want(http.StatusCreated, http.MethodPost, create, c.manifest(""), "Content-Type: application/json; charset=utf-8")
	c.want(http.StatusCreated, http.MethodPost, create, c.manifest(""), "Content-Type: application/yaml")
	for _, typ := range unknownTypes {
		c.unsupported(c.send(http.MethodPost, create, c.manifest(""), "Content-Type: "+typ), typ, "application/json")
	}
	c.protobuf(http.MethodPost, create)
}

// unsupported expects a 415 that names the accepted types. For patches of fixed kinds, Kubernetes' router returns it
// without them.
func (c *conformance) unsupported(r reply, typ, accepted string) {
	c.Helper()
	c.is(r, http.StatusUnsupportedMediaType, "body of type "+typ)
	if !c.kind.provided() && strings.HasSuffix(accepted, "patch+json") {
		return
	}
	if m := r.status().Message; !strings.Contains(m, accepted) {
		c.Errorf("body of type %s: %q does not say that %s is accepted", typ, m, accepted)
	}
}

// protobuf sends what claims to be protobuf and is not.
func (c *conformance) protobuf(method, path string) {
	c.Helper()
	const typ = "application/vnd.kubernetes.protobuf"
	r := c.send(method, path, "k8s\x00nonsense", "Content-Type: "+typ)
	if c.kind.binary() {
		c.is(r, http.StatusBadRequest, method+" of nonsense as protobuf")
		return
	}
	c.unsupported(r, typ, "application/json")
	if strings.Contains(r.status().Message, typ) {
		c.Errorf("%s of protobuf: %q says that it is accepted", method, r.status().Message)
	}
}

func (c *conformance) contentTypesOfChanges() {
	u := c.create("")
	one := c.one("") + "?dryRun=All&fieldManager=t"
	for _, typ := range unknownTypes {
		c.unsupported(c.send(http.MethodPut, one, c.text(u), "Content-Type: "+typ), typ, "application/json")
		c.unsupported(c.send(http.MethodPatch, one, labelled("x"), "Content-Type: "+typ), typ, "application/merge-patch+json")
	}
	for _, typ := range []string{"application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "application/apply-patch+cbor"} {
		c.unsupported(c.send(http.MethodPatch, one, labelled("x"), "Content-Type: "+typ), typ, "application/merge-patch+json")
	}
	c.protobuf(http.MethodPut, one)
	c.want(http.StatusOK, http.MethodPut, one, c.text(u), "Content-Type: application/yaml")
	c.want(http.StatusOK, http.MethodPatch, one, labelled("x"), mergePatch)
	c.want(http.StatusOK, http.MethodPatch, one, `[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]`, jsonPatch)
	c.want(http.StatusOK, http.MethodPatch, one+"&force=true", c.manifest(""), applyPatch)
	const strategic = "application/strategic-merge-patch+json"
	if r := c.send(http.MethodPatch, one, labelled("x"), "Content-Type: "+strategic); c.kind.provided() {
		c.unsupported(r, strategic, "application/merge-patch+json")
	} else {
		c.is(r, http.StatusOK, "strategic merge patch")
	}
	for _, patch := range []struct{ typ, body string }{
		{mergePatch, `{`}, {mergePatch, `[]`}, {jsonPatch, `{}`}, {jsonPatch, `[{"op":"nonsense"}]`}, {applyPatch, `{`}, {applyPatch, `[]`},
	} {
		if r := c.send(http.MethodPatch, one, patch.body, patch.typ); r.code < 400 || r.code >= 500 {
			c.Errorf("%s %s: %d %.300s", patch.typ, patch.body, r.code, r.body)
		}
	}
	// Deletes take their options in every encoding.
	c.want(http.StatusOK, http.MethodDelete, c.one("")+"?dryRun=All", "kind: DeleteOptions\napiVersion: v1\n", "Content-Type: application/yaml")
	c.want(http.StatusUnsupportedMediaType, http.MethodDelete, c.one("")+"?dryRun=All", "{}", "Content-Type: text/plain")
}

// text is the JSON of an object.
func (c *conformance) text(u *unstructured.Unstructured) string {
	c.Helper()
	b, err := u.MarshalJSON()
	if err != nil {
		c.Fatal(err)
	}
	return string(b)
}

func (c *conformance) names() {
	create := c.all() + "?dryRun=All"
	as := func(metadata string) string {
		return strings.Replace(c.manifest(""), fmt.Sprintf(`"name":%q`, c.name("")), metadata, 1)
	}
	r := c.want(http.StatusCreated, http.MethodPost, create, as(`"generateName":"net-"`))
	if name := c.object(r).GetName(); !strings.HasPrefix(name, "net-") || len(name) <= len("net-") {
		c.Errorf("generated name %q", name)
	}
	for _, metadata := range []string{
		`"labels":{}`, `"name":"a/b"`, `"name":".."`, `"name":"a%b"`,
		fmt.Sprintf(`"name":%q`, strings.Repeat("a", 300_000)), `"name":"x","namespace":"other"`, `"name":1`,
	} {
		r := c.send(http.MethodPost, create, as(metadata))
		if c.namespace == "" && strings.Contains(metadata, "namespace") || c.kind.binary() && len(metadata) > 100_000 {
			continue // a namespace is dropped where there is none; some of Kubernetes' kinds bound no name
		}
		if r.code < 400 || r.code >= 500 || strings.Contains(r.status().Message, "<nil>") {
			c.Errorf("%.60s: %d %.300s", metadata, r.code, r.body)
		}
	}
	// The longest name that Kubernetes has either works in every respect or is refused with its field.
	long := strings.Repeat("a", 253)
	r = c.send(http.MethodPost, create, as(fmt.Sprintf(`"name":%q`, long)))
	if r.code != http.StatusCreated && !strings.Contains(r.status().Message, "metadata.name") {
		c.Errorf("name of 253 characters: %d %.300s", r.code, r.body)
	}
	c.want(http.StatusNotFound, http.MethodGet, c.all()+"/"+long, "")
	wrong := strings.Replace(c.manifest(""), fmt.Sprintf(`"kind":%q`, c.kind.kind), `"kind":"Other"`, 1)
	r = c.send(http.MethodPost, create, wrong)
	// As of a custom resource, the kind of an object is a matter of validation.
	if c.kind.provided() && r.code == http.StatusUnprocessableEntity && strings.Contains(r.status().Message, "kind: Invalid value") {
		return
	}
	c.is(r, http.StatusBadRequest, "create of another kind")
}

func (c *conformance) conflicts() {
	u := c.create("")
	c.want(http.StatusConflict, http.MethodPost, c.all(), c.manifest(""))
	again := c.manifest("other", fmt.Sprintf(`"resourceVersion":%q`, u.GetResourceVersion()))
	if r := c.send(http.MethodPost, c.all(), again); c.kind.binary() {
		// Kubernetes' own registries call it an error of the server.
		c.is(r, http.StatusInternalServerError, "create with a resource version")
	} else {
		c.is(r, http.StatusBadRequest, "create with a resource version")
	}
	c.want(http.StatusOK, http.MethodPatch, c.one(""), labelled("1"), mergePatch)
	stale := u.DeepCopy()
	stale.SetLabels(map[string]string{"seen": "2"})
	if r := c.want(http.StatusConflict, http.MethodPut, c.one(""), c.text(stale)); r.status().Reason != "Conflict" {
		c.Errorf("reason %q", r.status().Reason)
	}
	c.want(http.StatusConflict, http.MethodPatch, c.one(""), fmt.Sprintf(`{"metadata":{"resourceVersion":%q,"labels":{"seen":"3"}}}`, u.GetResourceVersion()), mergePatch)
	c.want(http.StatusUnprocessableEntity, http.MethodPatch, c.one(""), `{"metadata":{"uid":"00000000-0000-0000-0000-000000000000"}}`, mergePatch)
	c.want(http.StatusUnprocessableEntity, http.MethodPatch, c.one(""), `[{"op":"test","path":"/metadata/labels/seen","value":"9"}]`, jsonPatch)
	renamed := strings.Replace(c.text(u), c.name(""), c.name("renamed"), 1)
	if r := c.send(http.MethodPut, c.one(""), renamed); r.code != http.StatusBadRequest && (c.kind.String() != "namespaces" || r.code != http.StatusConflict) {
		c.Errorf("update with another name: %d %.300s", r.code, r.body)
	}
	c.want(http.StatusNotFound, http.MethodPatch, c.one("missing"), labelled("1"), mergePatch)
	missing := c.send(http.MethodPut, c.one("missing")+"?dryRun=All", c.manifest("missing"))
	if missing.code != http.StatusNotFound && missing.code != http.StatusCreated {
		c.Errorf("update of what is missing: %d %.300s", missing.code, missing.body)
	}
}

func (c *conformance) apply() {
	one := c.one("")
	as := func(value string) string { return c.manifest("", fmt.Sprintf(`"labels":{"seen":%q}`, value)) }
	c.create("")
	for _, path := range []string{one, one + "?fieldManager="} {
		if r := c.send(http.MethodPatch, path, as("1"), applyPatch); r.code != http.StatusUnprocessableEntity && r.code != http.StatusBadRequest {
			c.Errorf("apply without a manager: %d %.300s", r.code, r.body)
		}
	}
	c.want(http.StatusOK, http.MethodPatch, one+"?fieldManager=a&force=true", as("1"), applyPatch)
	r := c.want(http.StatusConflict, http.MethodPatch, one+"?fieldManager=b", as("2"), applyPatch)
	if m := r.status().Message; !strings.Contains(m, `"a"`) || !strings.Contains(m, ".metadata.labels.seen") {
		c.Errorf("conflict: %s", m)
	}
	r = c.want(http.StatusOK, http.MethodPatch, one+"?fieldManager=b&force=true", as("2"), applyPatch)
	if c.object(r).GetLabels()["seen"] != "2" {
		c.Errorf("forced apply: %s", r.body)
	}
	// A field disappears if its only manager no longer applies it.
	r = c.want(http.StatusOK, http.MethodPatch, one+"?fieldManager=b&force=true", c.manifest(""), applyPatch)
	if _, there := c.object(r).GetLabels()["seen"]; there {
		c.Errorf("label is still there: %s", r.body)
	}
	c.want(http.StatusCreated, http.MethodPatch, c.one("new")+"?fieldManager=a&dryRun=All", c.manifest("new"), applyPatch)
}

func (c *conformance) preconditions() {
	u := c.create("")
	options := func(precondition string) string {
		return `{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{` + precondition + `}}`
	}
	c.want(http.StatusConflict, http.MethodDelete, c.one(""), options(`"uid":"00000000-0000-0000-0000-000000000000"`))
	c.want(http.StatusConflict, http.MethodDelete, c.one(""), options(`"resourceVersion":"1"`))
	c.want(http.StatusOK, http.MethodGet, c.one(""), "")
	c.want(http.StatusBadRequest, http.MethodDelete, c.one(""), `{`)
	c.want(http.StatusOK, http.MethodDelete, c.one(""), options(fmt.Sprintf(`"uid":%q,"resourceVersion":%q`, u.GetUID(), u.GetResourceVersion())))
	c.want(http.StatusNotFound, http.MethodDelete, c.one("missing"), "")
}

func (c *conformance) propagation() {
	for _, policy := range []string{"Background", "Foreground", "Orphan"} {
		name := strings.ToLower(policy)
		c.create(name)
		c.want(http.StatusOK, http.MethodDelete, c.one(name)+"?propagationPolicy="+policy, "")
		c.want(http.StatusNotFound, http.MethodGet, c.one(name), "")
	}
	c.create("")
	c.want(http.StatusUnprocessableEntity, http.MethodDelete, c.one("")+"?propagationPolicy=Sometimes", "")
	c.want(http.StatusOK, http.MethodDelete, c.one("")+"?gracePeriodSeconds=0", "")
}

func (c *conformance) dryRun() {
	c.want(http.StatusCreated, http.MethodPost, c.all()+"?dryRun=All", c.manifest("never"))
	c.want(http.StatusNotFound, http.MethodGet, c.one("never"), "")
	u := c.create("")
	one := c.one("") + "?dryRun=All&fieldManager=t"
	changed := u.DeepCopy()
	changed.SetLabels(map[string]string{"seen": "1"})
	for _, r := range []reply{
		c.want(http.StatusOK, http.MethodPut, one, c.text(changed)),
		c.want(http.StatusOK, http.MethodPatch, one, labelled("1"), mergePatch),
		c.want(http.StatusOK, http.MethodPatch, one, `[{"op":"add","path":"/metadata/labels","value":{"seen":"1"}}]`, jsonPatch),
		c.want(http.StatusOK, http.MethodPatch, one+"&force=true", c.manifest("", `"labels":{"seen":"1"}`), applyPatch),
	} {
		if r.code == http.StatusOK && c.object(r).GetLabels()["seen"] != "1" {
			c.Errorf("a dry run does not show the change: %s", r.body)
		}
	}
	c.want(http.StatusOK, http.MethodDelete, one, "")
	c.want(http.StatusOK, http.MethodDelete, c.one(""), `{"kind":"DeleteOptions","apiVersion":"v1","dryRun":["All"]}`)
	if c.kind.has("deletecollection") {
		c.want(http.StatusOK, http.MethodDelete, c.all()+"?dryRun=All&fieldSelector=metadata.name="+c.name(""), "")
	}
	if got := c.object(c.want(http.StatusOK, http.MethodGet, c.one(""), "")); got.GetResourceVersion() != u.GetResourceVersion() {
		c.Errorf("a dry run changed the object: %v", got.Object)
	}
	const some = "?dryRun=Some"
	c.want(http.StatusUnprocessableEntity, http.MethodPost, c.all()+some, c.manifest("x"))
	c.want(http.StatusUnprocessableEntity, http.MethodPut, c.one("")+some, c.text(u))
	c.want(http.StatusUnprocessableEntity, http.MethodPatch, c.one("")+some, labelled("1"), mergePatch)
	c.want(http.StatusUnprocessableEntity, http.MethodDelete, c.one("")+some, "")
}

func (c *conformance) fieldValidation() {
	u := c.create("")
	wrong := u.DeepCopy()
	wrong.Object["nonsense"] = "1"
	unknown, duplicate := c.manifest("new", `"nonsense":"1"`, `"nonsense":"2"`), c.manifest("new", `"labels":{"a":"1","a":"2"}`)
	for mode, code := range map[string]int{"Strict": http.StatusBadRequest, "Warn": http.StatusCreated, "Ignore": http.StatusCreated, "": http.StatusCreated} {
		create := c.all() + "?dryRun=All&fieldValidation=" + mode
		for what, body := range map[string]string{`unknown field "nonsense"`: unknown, `unknown field "metadata.nonsense"`: unknown, `duplicate field "metadata.labels.a"`: duplicate} {
			c.told(mode, what, c.want(code, http.MethodPost, create, body))
		}
		if code == http.StatusCreated {
			code = http.StatusOK
		}
		one := c.one("") + "?dryRun=All&fieldValidation=" + mode
		c.told(mode, `unknown field "nonsense"`, c.want(code, http.MethodPut, one, c.text(wrong)))
		if code == http.StatusBadRequest {
			code = http.StatusUnprocessableEntity
		}
		c.told(mode, `unknown field "nonsense"`, c.want(code, http.MethodPatch, one, `{"nonsense":"1"}`, mergePatch))
		c.told(mode, `unknown field "nonsense"`, c.want(code, http.MethodPatch, one, `[{"op":"add","path":"/nonsense","value":1}]`, jsonPatch))
	}
	c.want(http.StatusUnprocessableEntity, http.MethodPost, c.all()+"?dryRun=All&fieldValidation=Maybe", c.manifest("new"))
	// As for custom resources, an apply with an unknown structure is rejected in every mode.
	for _, mode := range []string{"Strict", "Warn", "Ignore"} {
		r := c.send(http.MethodPatch, c.one("")+"?dryRun=All&fieldManager=t&force=true&fieldValidation="+mode, c.manifest("", "", `"nonsense":"1"`), applyPatch)
		if r.code < 400 || !strings.Contains(r.status().Message, "nonsense") || strings.Contains(r.status().Message, "<nil>") {
			c.Errorf("apply of an unknown field, %s: %d %.300s", mode, r.code, r.body)
		}
	}
}

// told expects Strict and Warn to name a field, Warn as a warning, and Ignore not to name it.
func (c *conformance) told(mode, what string, r reply) {
	c.Helper()
	said := r.warnings()
	switch mode {
	case "Strict":
		said = r.status().Message
	case "Ignore":
		if strings.Contains(said, "unknown field") || strings.Contains(said, "duplicate field") {
			c.Errorf("Ignore warns: %s", said)
		}
		return
	}
	if !strings.Contains(said, what) {
		c.Errorf("%s: %q does not say %s", mode, said, what)
	}
}
