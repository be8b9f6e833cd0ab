package server_test

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/util/proto"
)

// TestOpenAPIIsClosed checks that every reference in every document resolves: one that dangles stops Argo CD for a
// whole cluster.
func TestOpenAPIIsClosed(t *testing.T) {
	client := core(t, shared.admin()).Discovery().RESTClient()
	read := func(path string) any {
		t.Helper()
		body, err := client.Get().RequestURI(path).SetHeader("Accept", "application/json").DoRaw(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var doc any
		if err := json.Unmarshal(body, &doc); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		return doc
	}
	documents := map[string]any{"/openapi/v2": read("/openapi/v2")}
	for _, entry := range read("/openapi/v3").(map[string]any)["paths"].(map[string]any) {
		path := entry.(map[string]any)["serverRelativeURL"].(string)
		documents[path] = read(path)
	}
	if len(documents) < 5 {
		t.Fatalf("only %d documents", len(documents))
	}
	for path, doc := range documents {
		refs(doc, func(ref string) {
			at := doc
			for _, step := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
				m, _ := at.(map[string]any)
				at = m[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]
			}
			if at == nil {
				t.Errorf("%s: %s leads nowhere", path, ref)
			}
		})
	}
	provided := 0
	for path := range documents {
		if strings.Contains(path, "sim.hykube.io") {
			provided++
		}
	}
	if provided != 1 {
		t.Errorf("%d documents of the provider's kinds, want 1", provided)
	}
	models := documents["/openapi/v2"].(map[string]any)["definitions"].(map[string]any)
	if models["io.hykube.api.v1alpha1.Query"] == nil {
		t.Error("there is no model of Query")
	}
	if models["io.hykube.sim.v1.sim-network"] == nil {
		t.Error("/openapi/v2 has no model of a provider's kind")
	}
	plan, _ := models["io.hykube.api.v1alpha1.Plan"].(map[string]any)
	if text, _ := plan["description"].(string); !strings.Contains(text, "destroyed") && !strings.Contains(text, "infrastructure") {
		t.Errorf("model of Plan: %v", plan)
	}
}

// TestNoStrategicMergeOfFixedKinds reads the content types of the patches of a ResourceSet and of a Namespace. kubectl cannot merge
// the template of a set, and would warn at each apply.
func TestNoStrategicMergeOfFixedKinds(t *testing.T) {
	client := core(t, shared.admin()).Discovery().RESTClient()
	at := func(document string, path ...string) string {
		t.Helper()
		body, err := client.Get().RequestURI(document).SetHeader("Accept", "application/json").DoRaw(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var found any
		if err := json.Unmarshal(body, &found); err != nil {
			t.Fatal(err)
		}
		for _, step := range path {
			m, _ := found.(map[string]any)
			found = m[step]
		}
		text, err := json.Marshal(found)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	const set, namespace = "/apis/hykube.io/v1alpha1/namespaces/{namespace}/resourcesets/{name}", "/api/v1/namespaces/{name}"
	for types, want := range map[string]bool{
		at("/openapi/v2", "paths", set, "patch", "consumes"):                                       false,
		at("/openapi/v3/apis/hykube.io/v1alpha1", "paths", set, "patch", "requestBody", "content"): false,
		at("/openapi/v2", "paths", namespace, "patch", "consumes"):                                 true,
		at("/openapi/v3/api/v1", "paths", namespace, "patch", "requestBody", "content"):            true,
	} {
		if !strings.Contains(types, "application/merge-patch+json") || strings.Contains(types, "strategic-merge") != want {
			t.Errorf("%s; want strategic merge: %t", types, want)
		}
	}
}

// Clients such as Argo CD build their merge types from /openapi/v2, and compare nothing of a kind that they do not find
// there.
func TestMergeTypesOfEveryKind(t *testing.T) {
	client := core(t, shared.admin()).Discovery()
	doc, err := client.OpenAPISchema()
	if err != nil {
		t.Fatal(err)
	}
	models, err := proto.NewOpenAPIData(doc)
	if err != nil {
		t.Fatal(err)
	}
	parser, err := managedfields.NewGVKParser(models, false)
	if err != nil {
		t.Fatal(err)
	}
	lists, err := client.ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list.APIResources {
			if gvk := gv.WithKind(r.Kind); parser.Type(gvk) == nil {
				t.Errorf("no type of %s", gvk)
			}
			found++
		}
	}
	if found < 15 {
		t.Errorf("only %d kinds", found)
	}
}

func refs(v any, found func(string)) {
	switch v := v.(type) {
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok {
			found(ref)
		}
		for _, inner := range v {
			refs(inner, found)
		}
	case []any:
		for _, inner := range v {
			refs(inner, found)
		}
	}
}

func TestMetricsAndVersion(t *testing.T) {
	client := core(t, shared.admin())
	body, err := client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"apiserver_request_duration_seconds_bucket", "kine_sql_total", "process_resident_memory_bytes"} {
		if !strings.Contains(string(body), name) {
			t.Errorf("/metrics lacks %s", name)
		}
	}
	version, err := client.Discovery().ServerVersion()
	if err != nil || !strings.Contains(version.GitVersion, "hykube") {
		t.Errorf("version %v, %v", version, err)
	}
}
