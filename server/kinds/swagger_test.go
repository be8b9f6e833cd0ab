package kinds_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	"github.com/google/go-cmp/cmp"
	googleproto "google.golang.org/protobuf/proto"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/util/proto"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/merge"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

const (
	swagger         = "/openapi/v2"
	swaggerProtobuf = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
)

// mergeTypes builds what Argo CD and other clients compute merges with, in the way that they do it.
func (h *fixture) mergeTypes(t testing.TB) *managedfields.GvkParser {
	t.Helper()
	a := h.do(t, admin, http.MethodGet, swagger, "", "Accept: "+swaggerProtobuf)
	if a.code != http.StatusOK {
		t.Fatalf("%d %s", a.code, a.body)
	}
	var doc openapi_v2.Document
	if err := googleproto.Unmarshal(a.body, &doc); err != nil {
		t.Fatal(err)
	}
	models, err := proto.NewOpenAPIData(&doc)
	if err != nil {
		t.Fatal(err)
	}
	parser, err := managedfields.NewGVKParser(models, false)
	if err != nil {
		t.Fatal(err)
	}
	return parser
}

func TestSwaggerHasEveryKind(t *testing.T) {
	h := newFixture(t, sim())
	parser := h.mergeTypes(t)
	for _, k := range h.kinds.Kinds("") {
		if parser.Type(k.GVK) == nil {
			t.Errorf("no type of %s", k.GVK)
		}
	}
	text, binary := h.do(t, admin, http.MethodGet, swagger, ""), h.do(t, admin, http.MethodGet, swagger, "", "Accept: "+swaggerProtobuf)
	if got := text.header.Get("Content-Type"); got != "application/json" {
		t.Errorf("content type %q", got)
	}
	// The two forms must be the same document.
	var want openapi_v2.Document
	if err := googleproto.Unmarshal(binary.body, &want); err != nil {
		t.Fatal(err)
	}
	got, err := openapi_v2.ParseDocument(text.body)
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range []*openapi_v2.Document{got, &want} {
		slices.SortFunc(doc.GetDefinitions().GetAdditionalProperties(), func(a, b *openapi_v2.NamedSchema) int { return strings.Compare(a.GetName(), b.GetName()) })
	}
	if !googleproto.Equal(got, &want) {
		t.Error("JSON and protobuf differ")
	}
	var doc struct {
		Definitions map[string]json.RawMessage
	}
	if err := json.Unmarshal(text.body, &doc); err != nil {
		t.Fatal(err)
	}
	for _, part := range bytes.Split(text.body, []byte(`"$ref":"#/definitions/`))[1:] {
		if name, _, _ := bytes.Cut(part, []byte(`"`)); doc.Definitions[string(name)] == nil {
			t.Errorf("reference to %q leads nowhere", name)
		}
	}
}

func TestSwaggerIsCached(t *testing.T) {
	h := newFixture(t, sim())
	first := h.do(t, admin, http.MethodGet, swagger, "")
	etag := first.header.Get("Etag")
	if a := h.do(t, admin, http.MethodGet, swagger, "", "If-None-Match: "+etag); a.code != http.StatusNotModified || len(a.body) > 0 {
		t.Errorf("the same again: %d", a.code)
	}
	if a := h.do(t, admin, http.MethodHead, swagger, ""); a.code != http.StatusOK || a.header.Get("Etag") != etag || len(a.body) > 0 {
		t.Errorf("HEAD: %d %v", a.code, a.header)
	}
	if a := h.do(t, admin, http.MethodGet, swagger, "", "Accept: text/html"); a.code != http.StatusNotAcceptable {
		t.Errorf("as HTML: %d", a.code)
	}
	if a := h.do(t, admin, http.MethodPost, swagger, "{}"); a.code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", a.code)
	}
	if a := h.do(t, "", http.MethodGet, swagger, ""); a.code != http.StatusUnauthorized {
		t.Errorf("without a token: %d", a.code)
	}
	twin := sim()
	twin.Name = "another"
	if err := h.kinds.Set(twin); err != nil {
		t.Fatal(err)
	}
	a := h.do(t, admin, http.MethodGet, swagger, "", "If-None-Match: "+etag)
	if a.code != http.StatusOK || !strings.Contains(string(a.body), `"io.hykube.another.v1.sim-network"`) {
		t.Errorf("after another provider was installed: %d", a.code)
	}
	h.kinds.Remove("another")
	if a := h.do(t, admin, http.MethodGet, swagger, ""); a.header.Get("Etag") != etag || !bytes.Equal(a.body, first.body) {
		t.Error("the document of the same kinds is another one")
	}
}

// A structured merge diff must predict what a server-side apply does, for every shape of argument.
func TestClientsPredictTheMerge(t *testing.T) {
	h := newFixture(t, sim())
	parser := h.mergeTypes(t)
	c := h.client(t, admin, "sim-networks")
	const start = `{"apiVersion":"sim.hykube.io/v1","kind":"sim-network",
		"metadata":{"name":"main","labels":{"team":"infra","tier":"1"},"annotations":{"a":"b"}},
		"spec":{"name":"net","mtu":1500,"enabled":true,"tags":{"a":"b","c":"d"},"dns":["x","y"],"zones":["z"],"point":{"x":1,"y":2},
			"endpoint":{"host":"h","port":1},"routes":{"r":{"via":"v"},"s":{"via":"w"}},"rule":[{"port":1},{"port":2,"cidrs":["c"]}],
			"timeouts":{"create":"1m"},"anything":{"x":[1,{"y":2}],"z":{"a":1}}},
		"lifecycle":{"preventDestroy":true,"dependsOn":["sim_subnet.a"]}}`
	apply := func(t *testing.T, manager, body string, options metav1.PatchOptions) *unstructured.Unstructured {
		t.Helper()
		options.FieldManager, options.Force = manager, new(true)
		u, err := c.Patch(t.Context(), "main", types.ApplyPatchType, []byte(body), options)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	apply(t, "argocd", start, metav1.PatchOptions{})
	apply(t, "other", `{"apiVersion":"sim.hykube.io/v1","kind":"sim-network","metadata":{"name":"main","labels":{"owner":"other"},"finalizers":["example.com/a"]},
		"spec":{"name":"net","tags":{"other":"1"},"cidr":"10.0.0.0/8"}}`, metav1.PatchOptions{})
	live, err := c.Get(t.Context(), "main", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for reason, replacements := range map[string][]string{
		"the same":                        nil,
		"a number changes":                {`"mtu":1500`, `"mtu":9000`},
		"a number becomes an expression":  {`"mtu":1500`, `"mtu":"${sim_network.a.mtu}"`},
		"a boolean becomes an expression": {`"enabled":true`, `"enabled":"${sim_network.a.enabled}"`},
		"a map becomes an expression":     {`{"a":"b","c":"d"}`, `"${sim_network.a.tags}"`},
		"blocks become an expression":     {`[{"port":1},{"port":2,"cidrs":["c"]}]`, `"${sim_network.a.rule}"`},
		"a key of a map goes":             {`,"c":"d"`, ``},
		"a map goes":                      {`"tags":{"a":"b","c":"d"},`, ``},
		"an element of a list goes":       {`["x","y"]`, `["y"]`},
		"a list goes":                     {`"dns":["x","y"],`, ``},
		"a block goes":                    {`{"port":1},`, ``},
		"an argument of a block changes":  {`"cidrs":["c"]`, `"cidrs":["d","e"]`},
		"a nested attribute goes":         {`,"s":{"via":"w"}`, ``},
		"part of a nested attribute goes": {`"host":"h","port":1`, `"host":"h"`},
		"an object changes":               {`"point":{"x":1,"y":2}`, `"point":{"x":3,"y":4}`},
		"a value of any type changes":     {`{"x":[1,{"y":2}],"z":{"a":1}}`, `{"x":[{"y":3}],"w":1}`},
		"labels and annotations change":   {`"tier":"1"`, `"tier":"2","new":"1"`, `"annotations":{"a":"b"}`, `"annotations":{}`},
		"the lifecycle changes":           {`"preventDestroy":true,`, ``, `["sim_subnet.a"]`, `["sim_subnet.b"]`},
		"what the other one set changes":  {`"name":"net"`, `"name":"renamed"`},
	} {
		t.Run(reason, func(t *testing.T) {
			config := strings.NewReplacer(replacements...).Replace(start)
			if len(replacements) > 0 && config == start {
				t.Fatal("the test changes nothing")
			}
			want := apply(t, "argocd", config, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
			desired := &unstructured.Unstructured{}
			if err := desired.UnmarshalJSON([]byte(config)); err != nil {
				t.Fatal(err)
			}
			got := predict(t, parser, live, desired, "argocd")
			for _, u := range []*unstructured.Unstructured{got, want} {
				u.SetManagedFields(nil)
				u.SetGeneration(0)
				unstructured.RemoveNestedField(u.Object, "status", "contributors") // only the server knows the time of the write
			}
			if d := cmp.Diff(want.Object, got.Object); d != "" {
				t.Errorf("what the server does (-) and what was predicted (+):\n%s", d)
			}
		})
	}
}

// predict computes, as a client does, the result of an apply of config over live.
func predict(t *testing.T, parser *managedfields.GvkParser, live, config *unstructured.Unstructured, manager string) *unstructured.Unstructured {
	t.Helper()
	pt := parser.Type(config.GroupVersionKind())
	if pt == nil {
		t.Fatalf("no type of %s", config.GroupVersionKind())
	}
	of := func(u *unstructured.Unstructured) *typed.TypedValue {
		t.Helper()
		v, err := pt.FromUnstructured(u.Object)
		if err != nil {
			t.Fatalf("read %s: %v", u.GetName(), err)
		}
		return v
	}
	managers := fieldpath.ManagedFields{}
	for _, m := range live.GetManagedFields() {
		set := &fieldpath.Set{}
		if err := set.FromJSON(m.FieldsV1.GetRawReader()); err != nil {
			t.Fatal(err)
		}
		managers[m.Manager+m.Subresource] = fieldpath.NewVersionedSet(set, fieldpath.APIVersion(m.APIVersion), m.Operation == metav1.ManagedFieldsOperationApply)
	}
	live = live.DeepCopy()
	live.SetManagedFields(nil)
	builder := merge.UpdaterBuilder{Converter: oneVersion{}}
	updater := builder.BuildUpdater()
	merged, _, err := updater.Apply(of(live), of(config), fieldpath.APIVersion(config.GetAPIVersion()), managers, manager, true)
	if err != nil {
		t.Fatal(err)
	}
	if merged == nil {
		return live
	}
	return &unstructured.Unstructured{Object: merged.AsValue().Unstructured().(map[string]any)}
}

// oneVersion is the converter of kinds that have one version.
type oneVersion struct{}

func (oneVersion) Convert(object *typed.TypedValue, _ fieldpath.APIVersion) (*typed.TypedValue, error) {
	return object, nil
}
func (oneVersion) IsMissingVersionError(error) bool { return false }
