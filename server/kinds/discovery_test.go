package kinds_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/kube-openapi/pkg/spec3"

	"github.com/hykube/hykube/api/v1alpha1"
)

func TestDiscovery(t *testing.T) {
	h := newFixture(t, sim())
	check := func(t *testing.T, d discovery.DiscoveryInterface) {
		_, lists, err := d.ServerGroupsAndResources()
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]metav1.APIResource{}
		for _, l := range lists {
			for _, r := range l.APIResources {
				found[l.GroupVersion+" "+r.Name] = r
			}
		}
		for _, name := range []string{"sim-networks", "sim-networks/status", "sim-networks/state", "sim-networks/resolve", "sim-networks/taint", "sim-subnets",
			"data-sim-images", "data-sim-images/status", "data-sim-images/state", "ephemeral-sim-tokens", "ephemeral-sim-tokens/status",
			"action-sim-reboots", "action-sim-reboots/status"} {
			if _, ok := found["sim.hykube.io/v1 "+name]; !ok {
				t.Errorf("%s is missing in %v", name, found)
			}
		}
		for _, name := range []string{"data-sim-images/taint", "data-sim-images/resolve", "ephemeral-sim-tokens/state", "ephemeral-sim-tokens/taint", "action-sim-reboots/state", "action-sim-reboots/taint"} {
			if _, ok := found["sim.hykube.io/v1 "+name]; ok {
				t.Errorf("%s is there", name)
			}
		}
		r := found["sim.hykube.io/v1 sim-networks"]
		if r.Kind != "sim-network" || r.SingularName != "sim-network" || !r.Namespaced || !slices.Equal(r.Categories, []string{"sim"}) {
			t.Errorf("resource: %+v", r)
		}
	}
	config := h.config(admin)
	modern := discovery.NewDiscoveryClientForConfigOrDie(config)
	t.Run("aggregated", func(t *testing.T) {
		check(t, modern)
		a := h.do(t, admin, http.MethodGet, "/apis", "", "Accept: application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		var list apidiscoveryv2.APIGroupDiscoveryList
		if err := json.Unmarshal(a.body, &list); err != nil || len(list.Items) != 1 || list.Items[0].Name != "sim.hykube.io" {
			t.Fatalf("%v %s", err, a.body)
		}
		for _, r := range list.Items[0].Versions[0].Resources {
			if len(r.Subresources) > 0 {
				t.Errorf("%s has the subresources %v; kubectl decodes all of them several times for each command", r.Resource, r.Subresources)
			}
		}
	})
	t.Run("legacy", func(t *testing.T) {
		legacy := discovery.NewDiscoveryClientForConfigOrDie(config)
		legacy.UseLegacyDiscovery = true
		check(t, legacy)
	})
	t.Run("expected", func(t *testing.T) {
		h.kinds.Remove("sim")
		h.kinds.Expect("sim")
		for _, path := range []string{"/apis/sim.hykube.io", "/apis/sim.hykube.io/v1", networks, networks + "?watch=true"} {
			if a := h.do(t, admin, http.MethodGet, path, ""); a.code != http.StatusServiceUnavailable || !strings.Contains(a.message(), "kubectl describe provider sim") {
				t.Errorf("%s: %d %s, want 503: its provider is installed and not ready", path, a.code, a.body)
			}
		}
	})
	t.Run("stale", func(t *testing.T) {
		_, _, failed, err := modern.GroupsAndMaybeResources()
		if gv := (kschema.GroupVersion{Group: "sim.hykube.io", Version: "v1"}); err != nil || !errors.As(failed[gv], new(discovery.StaleGroupVersionError)) {
			t.Errorf("aggregated discovery: %v %v, want a stale group", failed, err)
		}
		if a := h.do(t, admin, http.MethodGet, "/apis", ""); !strings.Contains(string(a.body), "sim.hykube.io/v1") {
			t.Errorf("the group is not listed: %s", a.body)
		}
	})
	t.Run("removed", func(t *testing.T) {
		h.kinds.Remove("sim")
		for _, path := range []string{"/apis/sim.hykube.io", "/apis/sim.hykube.io/v1", networks} {
			if a := h.do(t, admin, http.MethodGet, path, ""); a.code != http.StatusNotFound || !strings.Contains(a.message(), `no provider "sim" is installed`) {
				t.Errorf("%s: %d %s", path, a.code, a.body)
			}
		}
		for _, accept := range []string{"", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"} {
			if a := h.do(t, admin, http.MethodGet, "/apis", "", "Accept: "+accept); strings.Contains(string(a.body), "sim.hykube.io") {
				t.Errorf("still listed: %s", a.body)
			}
		}
		if a := h.do(t, admin, http.MethodGet, "/openapi/v3", ""); strings.Contains(string(a.body), "sim.hykube.io") {
			t.Errorf("document still listed: %s", a.body)
		}
	})
}

func TestUnknownPathsAreNotFound(t *testing.T) {
	h := newFixture(t, sim())
	for path, want := range map[string]string{
		"/apis/other.hykube.io/v1/things":                               `no provider "other" is installed`,
		"/apis/sim.hykube.io/v2/sim-networks":                           "has no resource",
		"/apis/sim.hykube.io/v1/namespaces/default/sim-foos":            `has no resource "sim-foos"`,
		"/apis/sim.hykube.io/v1/sim-networks/main":                      "are namespaced",
		"/apis/sim.hykube.io/v1/namespaces/default/sim-networks/main/x": "no subresource",
	} {
		if a := h.do(t, admin, http.MethodGet, path, ""); a.code != http.StatusNotFound || !strings.Contains(a.message(), want) {
			t.Errorf("%s: %d %s", path, a.code, a.body)
		}
	}
	if a := h.do(t, admin, http.MethodGet, "/apis/example.com/v1", ""); a.code != http.StatusNotFound {
		t.Errorf("another group: %d", a.code)
	}
}

func TestLookup(t *testing.T) {
	h := newFixture(t, sim())
	gvk := kschema.GroupVersionKind{Group: "sim.hykube.io", Kind: "sim-network"}
	k, ok := h.kinds.Kind(gvk)
	if !ok || k.Type != "sim_network" || k.Provider != "sim" || k.GVR.Resource != "sim-networks" || k.GVK.Version != "v1" || k.Schema == nil {
		t.Errorf("by kind: %+v %t", k, ok)
	}
	gvk.Version = "v2"
	if _, ok := h.kinds.Kind(gvk); ok {
		t.Error("found a version that is not served")
	}
	twin := sim()
	twin.Name = "another"
	if err := h.kinds.Set(twin); err != nil {
		t.Fatal(err)
	}
	if k.Mode != v1alpha1.ModeManaged || k.Identity == nil || k.List == nil || k.Stored().Resource != "sim_network" {
		t.Errorf("by kind: %+v", k)
	}
	d, ok := h.kinds.Kind(kschema.GroupVersionKind{Group: "sim.hykube.io", Kind: "data-sim-image"})
	if !ok || d.Mode != v1alpha1.ModeData || d.Type != "sim_image" || d.GVR.Resource != "data-sim-images" || d.Stored().Resource != "data.sim_image" {
		t.Errorf("data source by kind: %+v %t", d, ok)
	}
	if ks := h.kinds.ByType("", "sim_network"); len(ks) != 2 || ks[0].Provider != "another" || ks[1].Provider != "sim" {
		t.Errorf("by type: %+v", ks)
	}
	if len(h.kinds.ByType("", "sim_nothing")) != 0 || len(h.kinds.ByType(v1alpha1.ModeData, "sim_network")) != 0 || len(h.kinds.Kinds("sim")) != 5 || len(h.kinds.Kinds("")) != 10 {
		t.Error("lists are wrong")
	}
	if err := h.kinds.Set(twin); err != nil {
		t.Errorf("set again: %v", err)
	}
	twin.Name = "Not.A.Label"
	if err := h.kinds.Set(twin); err == nil {
		t.Error("took a provider whose name cannot be a group")
	}
}

func TestOpenAPI(t *testing.T) {
	h := newFixture(t, sim())
	a := h.do(t, admin, http.MethodGet, "/openapi/v3", "")
	var index struct {
		Paths map[string]struct{ ServerRelativeURL string }
	}
	if err := json.Unmarshal(a.body, &index); err != nil {
		t.Fatalf("%v: %s", err, a.body)
	}
	if index.Paths["version"].ServerRelativeURL == "" && index.Paths["apis"].ServerRelativeURL == "" {
		t.Errorf("the documents of the fixed kinds are missing: %s", a.body)
	}
	url := index.Paths["apis/sim.hykube.io/v1"].ServerRelativeURL
	a = h.do(t, admin, http.MethodGet, url, "")
	if a.code != http.StatusOK || a.header.Get("Cache-Control") == "" {
		t.Fatalf("%s: %d %v", url, a.code, a.header)
	}
	if n := h.do(t, admin, http.MethodGet, url, "", "If-None-Match: "+a.header.Get("Etag")); n.code != http.StatusNotModified {
		t.Errorf("the same again: %d", n.code)
	}
	if n := h.do(t, admin, http.MethodGet, "/openapi/v3/apis/sim.hykube.io/v1?hash=OLD", ""); !bytes.Equal(n.body, a.body) {
		t.Errorf("an old hash does not lead to the document: %d", n.code)
	}
	if n := h.do(t, admin, http.MethodGet, url, "", "Accept: application/com.github.proto-openapi.spec.v3@v1.0+protobuf"); n.code != http.StatusOK || !strings.Contains(n.header.Get("Content-Type"), "protobuf") {
		t.Errorf("protobuf: %d %v", n.code, n.header)
	}

	var doc spec3.OpenAPI
	if err := json.Unmarshal(a.body, &doc); err != nil {
		t.Fatal(err)
	}
	for _, ref := range regexp.MustCompile(`"\$ref":"#/components/schemas/([^"]+)"`).FindAllStringSubmatch(string(a.body), -1) {
		if doc.Components.Schemas[ref[1]] == nil {
			t.Errorf("reference to %q leads nowhere", ref[1])
		}
	}
	model := doc.Components.Schemas["io.hykube.sim.v1.sim-network"]
	if model == nil {
		t.Fatalf("model is missing")
	}
	spec := model.Properties["spec"]
	if !slices.Equal(spec.Required, []string{"name"}) {
		t.Errorf("required: %v", spec.Required)
	}
	for name, want := range map[string]string{
		"mtu": "number", "enabled": "boolean", "name": "string", "tags": "object", "dns": "array", "zones": "array",
		"rule": "array", "timeouts": "object", "endpoint": "object", "routes": "object", "point": "object",
	} {
		if p := spec.Properties[name]; !p.Type.Contains(want) {
			t.Errorf("spec.%s is %v, want %s", name, p.Type, want)
		}
	}
	if _, ok := spec.Properties["id"]; ok {
		t.Error("spec has a computed attribute")
	}
	if rule := spec.Properties["rule"]; *rule.MaxItems != 3 || !rule.Items.Schema.Properties["port"].Type.Contains("number") || rule.Items.Schema.Properties["hits"].Type != nil {
		t.Errorf("rule: %+v", rule)
	}
	if routes := spec.Properties["routes"]; !routes.AdditionalProperties.Schema.Properties["via"].Type.Contains("string") {
		t.Errorf("routes: %+v", routes)
	}
	if !strings.Contains(spec.Properties["password"].Description, "sensitive") {
		t.Error("the schema does not mark the secret")
	}
	attributes := model.Properties["status"].Properties["attributes"]
	if attributes.Properties["id"].Description == "" || attributes.Properties["rule"].Items.Schema.Properties["hits"].Type == nil {
		t.Errorf("status.attributes: %+v", attributes)
	}
	if _, ok := attributes.Properties["mtu"]; ok {
		t.Error("status repeats what spec has")
	}
	subnet := doc.Components.Schemas["io.hykube.sim.v1.sim-subnet"].Properties["spec"]
	if pool := subnet.Properties["pool"]; *pool.MinItems != 1 || !slices.Contains(subnet.Required, "pool") {
		t.Errorf("subnet: %+v", subnet)
	}
	for kind, want := range map[string]struct{ spec, lifecycle, other string }{
		"data-sim-image":      {"family", "io.hykube.meta.v1.LifecycleOfData", "preventDestroy"},
		"ephemeral-sim-token": {"role", "io.hykube.meta.v1.LifecycleOfEphemeral", "import"},
		"action-sim-reboot":   {"instance_id", "io.hykube.meta.v1.LifecycleOfAction", "postconditions"},
	} {
		model := doc.Components.Schemas["io.hykube.sim.v1."+kind]
		if model == nil || model.Properties["spec"].Properties[want.spec].Type == nil {
			t.Errorf("model of %s: %+v", kind, model)
			continue
		}
		if ref := model.Properties["lifecycle"].AllOf[0].Ref.String(); !strings.HasSuffix(ref, want.lifecycle) {
			t.Errorf("lifecycle of %s is %s", kind, ref)
		}
		fields := doc.Components.Schemas[want.lifecycle].Properties
		if fields["dependsOn"].Type == nil || fields["preconditions"].Items == nil || fields[want.other].Type != nil {
			t.Errorf("lifecycle of %s: %v", kind, fields)
		}
		if _, ok := model.Properties["status"].Properties["attributes"]; ok != (kind == "data-sim-image") {
			t.Errorf("%s has attributes: %t", kind, ok)
		}
	}
	patch := doc.Paths.Paths["/apis/sim.hykube.io/v1/namespaces/{namespace}/sim-networks/{name}"].Patch
	var parameters []string
	for _, p := range patch.Parameters {
		parameters = append(parameters, p.Name)
	}
	if !slices.Contains(parameters, "fieldValidation") || !slices.Contains(parameters, "dryRun") {
		t.Errorf("kubectl would not validate: %v", parameters)
	}
}

// kubectl parses the document of a group up to twice for each kind that it writes. So its commands that write get one
// without models. All others need the models.
func TestOperationsAlone(t *testing.T) {
	h := newFixture(t, sim())
	read := func(command string) (etag, url string) {
		t.Helper()
		a := h.do(t, admin, http.MethodGet, "/openapi/v3", "", "Kubectl-Command: "+command)
		var index struct {
			Paths map[string]struct{ ServerRelativeURL string }
		}
		if err := json.Unmarshal(a.body, &index); err != nil || a.header.Get("Vary") != "Kubectl-Command" {
			t.Fatalf("%v %v: %s", err, a.header, a.body)
		}
		return a.header.Get("Etag"), index.Paths["apis/sim.hykube.io/v1"].ServerRelativeURL
	}
	etag, complete := read("")
	briefTag, brief := read("kubectl apply")
	if complete == brief || etag == briefTag {
		t.Fatalf("kubectl apply gets the complete document: %s", brief)
	}
	for command, want := range map[string]string{
		"kubectl create": brief, "kubectl diff": brief, "kubectl edit": brief, "kubectl replace": brief, "hykube kubectl apply": brief,
		"kubectl explain": complete, "kubectl hykube apply": complete, "hykube kubectl hykube apply": complete, "hykube kubectl explain": complete,
		"kubectl": complete, "kubectl get": complete, "other apply": complete,
	} {
		if _, got := read(command); got != want {
			t.Errorf("%s gets %s, want %s", command, got, want)
		}
	}
	a, whole := h.do(t, admin, http.MethodGet, brief, ""), h.do(t, admin, http.MethodGet, complete, "")
	var doc, all spec3.OpenAPI
	if err := errors.Join(json.Unmarshal(a.body, &doc), json.Unmarshal(whole.body, &all)); err != nil {
		t.Fatal(err)
	}
	if len(doc.Components.Schemas) > 0 || len(all.Components.Schemas) == 0 || !reflect.DeepEqual(doc.Paths, all.Paths) {
		t.Errorf("the documents differ in more than models: %d and %d bytes, %d and %d models", len(a.body), len(whole.body), len(doc.Components.Schemas), len(all.Components.Schemas))
	}
	for _, ref := range regexp.MustCompile(`"\$ref":"#/components/(\w+)/(\w+)"`).FindAllStringSubmatch(string(a.body), -1) {
		if !(ref[1] == "parameters" && doc.Components.Parameters[ref[2]] != nil || ref[1] == "requestBodies" && doc.Components.RequestBodies[ref[2]] != nil) {
			t.Errorf("reference to %q leads nowhere", ref[0])
		}
	}
	for url, got := range map[string]answer{brief: a, complete: whole} {
		expires, err := http.ParseTime(got.header.Get("Expires"))
		if err != nil || time.Until(expires) < 24*time.Hour {
			t.Errorf("%s: expires at %s; kubectl would request it again", url, got.header.Get("Expires"))
		}
		if n := h.do(t, admin, http.MethodGet, url, "", "If-None-Match: "+got.header.Get("Etag")); n.code != http.StatusNotModified {
			t.Errorf("%s again: %d", url, n.code)
		}
	}
	if n := h.do(t, admin, http.MethodGet, brief, "", "If-None-Match: "+whole.header.Get("Etag")); n.code != http.StatusOK {
		t.Errorf("one document has the tag of the other: %d", n.code)
	}
}

func TestWatch(t *testing.T) {
	h := newFixture(t, sim())
	h.create(t, network("first", `{"name":"n"}`))
	c := h.client(t, admin, "sim-networks")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	next := func(w interface{ ResultChan() <-chan watch.Event }) (watch.Event, error) {
		select {
		case e, ok := <-w.ResultChan():
			if !ok {
				return e, errors.New("watch ended")
			}
			return e, nil
		case <-ctx.Done():
			return watch.Event{}, ctx.Err()
		}
	}
	list, err := c.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := c.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.GetResourceVersion(), AllowWatchBookmarks: true})
	if err != nil {
		t.Fatal(err)
	}
	h.create(t, network("second", `{"name":"n"}`))
	if err := c.Delete(t.Context(), "first", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"ADDED second", "DELETED first"} {
		e, err := next(w)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%s %s", e.Type, e.Object.(metav1.Object).GetName()); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}

	initial, err := c.Watch(t.Context(), metav1.ListOptions{
		SendInitialEvents: new(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	e, err := next(initial)
	if err != nil || e.Type != "ADDED" {
		t.Fatalf("initial: %v %v", e, err)
	}
	e, err = next(initial)
	if err != nil || e.Type != "BOOKMARK" || e.Object.(metav1.Object).GetAnnotations()[metav1.InitialEventsAnnotationKey] != "true" {
		t.Fatalf("end of initial events: %v %v", e, err)
	}

	h.kinds.Remove("sim")
	for _, w := range []interface{ ResultChan() <-chan watch.Event }{w, initial} {
		for {
			if _, err := next(w); err != nil {
				if ctx.Err() != nil {
					t.Error("a watch goes on after the provider was removed")
				}
				break
			}
		}
	}
}
