package server_test

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// TestAPIConformance holds every kind that discovery lists to the conventions of the Kubernetes API. A new kind is
// covered without a change here, unless it refuses an object without a spec: then contents needs a line.
func TestAPIConformance(t *testing.T) {
	ns := namespace(t, "conformance")
	served := servedKinds(t, shared.admin())
	if len(served) < 20 {
		t.Fatalf("only %d kinds are served", len(served))
	}
	// A namespace of an earlier run in this process may still be going away.
	run := strings.ToLower(rand.Text()[:4])
	for i, k := range served {
		if readOnly[k.String()] != "" {
			continue
		}
		t.Run(k.String(), func(t *testing.T) {
			t.Parallel()
			for _, rule := range rules {
				if !k.has(rule.verbs...) || exceptions[rule.name][k.String()] != "" {
					continue
				}
				t.Run(rule.name, func(t *testing.T) {
					c := newConformance(t, shared, k, ns)
					// Objects of the kind that this rule makes begin with its name. Two groups serve the same events,
					// hence the number.
					c.prefix = fmt.Sprintf("c%d%s-", i, run) + strings.ReplaceAll(strings.ToLower(rule.name), " ", "-")
					c.prefix = strings.TrimSuffix(c.prefix[:min(len(c.prefix), 28)], "-")
					rule.check(c)
				})
			}
		})
	}
}

// contents holds the required fields of each kind, except for the metadata. %[1]s is the namespace.
var contents = map[string]string{
	"providers.hykube.io":                                      `"spec":{"source":"a/b"}`,
	"providerconfigs.hykube.io":                                `"spec":{"provider":"a"}`,
	"planpolicies.hykube.io":                                   `"spec":{"rules":[{"name":"r","when":"counts.delete > 0","effect":"Warn"}]}`,
	"clusterplanpolicies.hykube.io":                            `"spec":{"rules":[{"name":"r","when":"counts.delete > 0","effect":"Warn"}]}`,
	"prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": `"spec":{"type":"Limited","limited":{"nominalConcurrencyShares":1,"limitResponse":{"type":"Reject"}}}`,
	"notifications.hykube.io":                                  `"spec":{"webhook":{"url":"https://receiver.example.com/hook"}}`,
	"resourcesets.hykube.io":                                   `"spec":{"count":1,"template":{"apiVersion":"sim.hykube.io/v1","kind":"sim-network","spec":{"name":"n"}}}`,
	"modules.hykube.io":                                        `"spec":{"source":{"configMap":"files"}}`,
	"stacks.hykube.io":                                         `"spec":{"selector":{"matchLabels":{"conformance":"none"}},"suspend":true}`,
	"events":                                                   `"involvedObject":{"namespace":%[1]q}`,
	"events.events.k8s.io":                                     `"eventTime":"2026-01-01T00:00:00.000000Z","reportingController":"example.com/c","reportingInstance":"i","action":"a","reason":"r","type":"Normal","regarding":{"namespace":%[1]q}`,
	"clusterrolebindings.rbac.authorization.k8s.io":            `"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"none"}`,
	"rolebindings.rbac.authorization.k8s.io":                   `"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"none"}`,
}

// readOnly are kinds of which a client makes no objects, or is not their only writer, with the reason.
var readOnly = map[string]string{
	"flowschemas.flowcontrol.apiserver.k8s.io": "Kubernetes' flow control writes their status soon after each write of a client",
	"planrecords.hykube.io":                    "the server alone writes records",
}

// exceptions are kinds to which a rule does not apply, by the rule's name, with the reason.
var exceptions = map[string]map[string]string{
	"propagation policies": {"namespaces": "a namespace is emptied before it goes"},
	"watch":                {"namespaces": "a namespace is emptied before it goes"},
}

// apiKind is a kind as in discovery.
type apiKind struct {
	resource     schema.GroupVersionResource
	kind         string
	namespaced   bool
	verbs        []string
	subresources map[string][]string
}

func (k apiKind) String() string { return k.resource.GroupResource().String() }

func (k apiKind) has(verbs ...string) bool {
	return !slices.ContainsFunc(verbs, func(v string) bool { return !slices.Contains(k.verbs, v) })
}

// provided reports whether a provider serves the kind.
func (k apiKind) provided() bool { return strings.HasSuffix(k.resource.Group, ".hykube.io") }

// binary reports whether objects of the kind have a protobuf form.
func (k apiKind) binary() bool {
	return k.resource.Group != "hykube.io" && !k.provided()
}

func servedKinds(t *testing.T, config *rest.Config) []apiKind {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	_, lists, err := client.WithLegacy().ServerGroupsAndResources() // with all subresources
	if err != nil {
		t.Fatal(err)
	}
	found := map[schema.GroupVersionResource]*apiKind{}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list.APIResources {
			name, sub, isSub := strings.Cut(r.Name, "/")
			gvr := gv.WithResource(name)
			if found[gvr] == nil {
				found[gvr] = &apiKind{resource: gvr, subresources: map[string][]string{}}
			}
			if isSub {
				found[gvr].subresources[sub] = r.Verbs
				continue
			}
			found[gvr].kind, found[gvr].namespaced, found[gvr].verbs = r.Kind, r.Namespaced, r.Verbs
		}
	}
	var out []apiKind
	for _, k := range found {
		out = append(out, *k)
	}
	slices.SortFunc(out, func(a, b apiKind) int { return cmp.Compare(a.String(), b.String()) })
	return out
}

// conformance is one rule that is checked for one kind.
type conformance struct {
	*testing.T
	kind apiKind
	// namespace of the objects; empty for kinds without one.
	namespace string
	prefix    string
	client    *http.Client
	url       string
}

func newConformance(t *testing.T, server *instance, k apiKind, ns string) *conformance {
	t.Helper()
	client, err := rest.HTTPClientFor(server.admin())
	if err != nil {
		t.Fatal(err)
	}
	c := &conformance{T: t, kind: k, client: client, url: server.URL(), namespace: ns}
	if !k.namespaced {
		c.namespace = ""
	}
	return c
}

// group is the path of the kind's group and version.
func (c *conformance) group() string {
	if c.kind.resource.Group == "" {
		return "/api/" + c.kind.resource.Version
	}
	return "/apis/" + c.kind.resource.Group + "/" + c.kind.resource.Version
}

// everywhere is the path of the objects of all namespaces.
func (c *conformance) everywhere() string { return c.group() + "/" + c.kind.resource.Resource }

// all is the path of the objects.
func (c *conformance) all() string {
	if c.namespace == "" {
		return c.everywhere()
	}
	return c.group() + "/namespaces/" + c.namespace + "/" + c.kind.resource.Resource
}

// one is the path of an object of this rule.
func (c *conformance) one(name string) string { return c.all() + "/" + c.name(name) }

func (c *conformance) name(name string) string { return strings.TrimSuffix(c.prefix+"-"+name, "-") }

// manifest returns the JSON of an object of this rule, with further fields of the metadata and of the object.
func (c *conformance) manifest(name string, more ...string) string {
	metadata := fmt.Sprintf(`"name":%q`, c.name(name))
	if len(more) > 0 && more[0] != "" {
		metadata += "," + more[0]
	}
	out := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{%s}`, c.kind.resource.GroupVersion().String(), c.kind.kind, metadata)
	content := contents[c.kind.String()]
	if strings.Contains(content, "%[1]") {
		content = fmt.Sprintf(content, c.namespace)
	}
	if content != "" {
		out += "," + content
	}
	for _, m := range more[min(1, len(more)):] {
		out += "," + m
	}
	return out + "}"
}

// reply is a response of the server.
type reply struct {
	code   int
	header http.Header
	body   string
}

// status is the Status in an error response.
func (r reply) status() metav1.Status {
	var s metav1.Status
	_ = json.Unmarshal([]byte(r.body), &s)
	return s
}

func (r reply) warnings() string {
	return strings.ReplaceAll(strings.Join(r.header.Values("Warning"), " "), `\"`, `"`)
}

func (c *conformance) object(r reply) *unstructured.Unstructured {
	c.Helper()
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON([]byte(r.body)); err != nil {
		c.Fatalf("%d %.300s: %v", r.code, r.body, err)
	}
	return u
}

// send asks the server. headers are "Name: value" lines; a body is JSON unless they say otherwise.
func (c *conformance) send(method, path, body string, headers ...string) reply {
	c.Helper()
	r, err := http.NewRequestWithContext(c.Context(), method, c.url+path, strings.NewReader(body))
	if err != nil {
		c.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	resp, err := c.client.Do(r)
	if err != nil {
		c.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		c.Fatal(err)
	}
	return reply{resp.StatusCode, resp.Header, string(b)}
}

// want asks the server, and expects a status code.
func (c *conformance) want(code int, method, path, body string, headers ...string) reply {
	c.Helper()
	r := c.send(method, path, body, headers...)
	c.is(r, code, fmt.Sprintf("%s %s %.80s %v", method, path, body, headers))
	return r
}

// is expects one of a reply's status code and, of an error, that it can be read by clients and by people.
func (c *conformance) is(r reply, code int, request string) {
	c.Helper()
	if r.code != code {
		c.Errorf("%s: %d, want %d: %.400s", request, r.code, code, r.body)
	}
	if r.code >= 400 && strings.Contains(r.status().Message, "<nil>") {
		c.Errorf("%s: %s", request, r.status().Message)
	}
}

// create makes an object that goes with the test.
func (c *conformance) create(name string, more ...string) *unstructured.Unstructured {
	c.Helper()
	r := c.want(http.StatusCreated, http.MethodPost, c.all(), c.manifest(name, more...))
	if r.code != http.StatusCreated {
		c.FailNow()
	}
	c.Cleanup(func() {
		req, err := http.NewRequest(http.MethodDelete, c.url+c.one(name), nil)
		if err != nil {
			c.Error(err)
			return
		}
		if resp, err := c.client.Do(req); err == nil {
			_ = resp.Body.Close()
		}
	})
	return c.object(r)
}

// Headers of patches.
const (
	mergePatch = "Content-Type: application/merge-patch+json"
	jsonPatch  = "Content-Type: application/json-patch+json"
	applyPatch = "Content-Type: application/apply-patch+yaml"
)

// labelled is a merge patch that sets a label.
func labelled(value string) string { return fmt.Sprintf(`{"metadata":{"labels":{"seen":%q}}}`, value) }
