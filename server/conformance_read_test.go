package server_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func (c *conformance) answers() {
	c.create("")
	const (
		meta     = ";v=v1;g=meta.k8s.io"
		protobuf = "application/vnd.kubernetes.protobuf"
	)
	for path, list := range map[string]string{c.one(""): "", c.all(): "List"} {
		for accept, kind := range map[string]string{
			"":                                   c.kind.kind + list,
			"*/*":                                c.kind.kind + list,
			"application/json":                   c.kind.kind + list,
			"application/cbor, application/json": c.kind.kind + list,
			"text/html, application/json;q=0.1":  c.kind.kind + list,
			"application/json;as=Table" + meta:   "Table",
			"application/json;as=Nonsense, */*":  c.kind.kind + list,
			"application/json;as=Table;v=v1beta9;g=meta.k8s.io, application/json": c.kind.kind + list,
			"application/json;as=PartialObjectMetadata" + list + meta:             "PartialObjectMetadata" + list,
		} {
			r := c.want(http.StatusOK, http.MethodGet, path, "", "Accept: "+accept)
			var got metav1.TypeMeta
			if err := json.Unmarshal([]byte(r.body), &got); err != nil || got.Kind != kind {
				c.Errorf("%s as %q is a %q, want %q: %v", path, accept, got.Kind, kind, err)
			}
		}
		if r := c.want(http.StatusOK, http.MethodGet, path, "", "Accept: application/yaml"); !strings.Contains(r.body, "kind: "+c.kind.kind+list) {
			c.Errorf("as YAML: %.300s", r.body)
		}
		for _, accept := range []string{"text/html", "application/cbor", "application/json;as=Nonsense"} {
			c.want(http.StatusNotAcceptable, http.MethodGet, path, "", "Accept: "+accept)
		}
		if c.kind.binary() {
			c.want(http.StatusOK, http.MethodGet, path, "", "Accept: "+protobuf)
			continue
		}
		c.want(http.StatusNotAcceptable, http.MethodGet, path, "", "Accept: "+protobuf)
		if r := c.want(http.StatusOK, http.MethodGet, path, "", "Accept: "+protobuf+", application/json"); !strings.HasPrefix(r.header.Get("Content-Type"), "application/json") {
			c.Errorf("as %q or JSON: %q", protobuf, r.header.Get("Content-Type"))
		}
	}
	c.want(http.StatusNotFound, http.MethodGet, c.one("missing"), "")
	c.want(http.StatusNotAcceptable, http.MethodPost, c.all()+"?dryRun=All", c.manifest("new"), "Accept: text/html")
}

func (c *conformance) scope() {
	if c.namespace == "" {
		c.want(http.StatusNotFound, http.MethodGet, c.group()+"/namespaces/default/"+c.kind.resource.Resource, "")
		return
	}
	c.want(http.StatusOK, http.MethodGet, c.everywhere(), "")
	c.want(http.StatusMethodNotAllowed, http.MethodPost, c.everywhere(), c.manifest(""))
	c.want(http.StatusMethodNotAllowed, http.MethodDelete, c.everywhere(), "")
	c.want(http.StatusMethodNotAllowed, http.MethodPut, c.everywhere(), c.manifest(""))
	c.want(http.StatusMethodNotAllowed, http.MethodPatch, c.everywhere(), labelled("x"), mergePatch)
	c.want(http.StatusNotFound, http.MethodGet, c.everywhere()+"/x", "")
	c.want(http.StatusNotFound, http.MethodDelete, c.everywhere()+"/x", "")
	c.want(http.StatusMethodNotAllowed, http.MethodPut, c.all(), c.manifest(""))
	c.want(http.StatusMethodNotAllowed, http.MethodPost, c.one("x"), c.manifest("x"))
	missing := strings.Replace(c.all(), "/"+c.namespace+"/", "/missing/", 1)
	c.want(http.StatusNotFound, http.MethodPost, missing, c.manifest(""))
	c.want(http.StatusOK, http.MethodGet, missing, "")
}

func (c *conformance) subresourcesOf() {
	c.create("")
	c.want(http.StatusNotFound, http.MethodGet, c.one("")+"/nonsense", "")
	if slices.Contains(c.kind.subresources["status"], "get") {
		c.want(http.StatusOK, http.MethodGet, c.one("")+"/status", "")
	}
	for name, verbs := range c.kind.subresources {
		if !slices.Contains(verbs, "create") {
			c.want(http.StatusMethodNotAllowed, http.MethodPost, c.one("")+"/"+name, "{}")
		}
		if !slices.Contains(verbs, "delete") {
			c.want(http.StatusMethodNotAllowed, http.MethodDelete, c.one("")+"/"+name, "")
		}
	}
}

// list returns the names of this rule's objects, and the token of the next page.
func (c *conformance) list(query string) (names []string, l *unstructured.UnstructuredList) {
	c.Helper()
	r := c.want(http.StatusOK, http.MethodGet, c.all()+"?"+query, "")
	l = &unstructured.UnstructuredList{}
	if err := l.UnmarshalJSON([]byte(r.body)); err != nil {
		c.Fatalf("%s: %v", query, err)
	}
	for _, u := range l.Items {
		if strings.HasPrefix(u.GetName(), c.prefix) {
			names = append(names, strings.TrimPrefix(u.GetName(), c.prefix+"-"))
		}
	}
	return names, l
}

// label is a selector of all objects of this rule; rules run at the same time.
func (c *conformance) label() string { return "labelSelector=rule%3D" + c.prefix }

func (c *conformance) createLabelled(name string) *unstructured.Unstructured {
	c.Helper()
	return c.create(name, fmt.Sprintf(`"labels":{"rule":%q,"letter":%q}`, c.prefix, name))
}

func (c *conformance) selectors() {
	for _, name := range []string{"a", "b"} {
		c.createLabelled(name)
	}
	for query, want := range map[string]string{
		c.label(): "a b",
		"labelSelector=" + url.QueryEscape("rule="+c.prefix+",letter in (b,c)"): "b",
		"labelSelector=" + url.QueryEscape("rule="+c.prefix+",letter!=a"):       "b",
		"labelSelector=" + url.QueryEscape("rule="+c.prefix+",!letter"):         "",
		"fieldSelector=metadata.name%3D" + c.name("a"):                          "a",
		c.label() + "&fieldSelector=metadata.name%21%3D" + c.name("a"):          "b",
	} {
		if got, _ := c.list(query); strings.Join(got, " ") != want {
			c.Errorf("%s: %v, want %q", query, got, want)
		}
	}
	// Version 0 is any version, also one that is behind.
	c.list(c.label() + "&resourceVersion=0")
	for _, query := range []string{"labelSelector=a%3D%3D%3Db", "labelSelector=a+in+b", "fieldSelector=nonsense", "fieldSelector=spec.nonsense%3Da", "limit=x", "continue=nonsense", "timeoutSeconds=x"} {
		c.want(http.StatusBadRequest, http.MethodGet, c.all()+"?"+query, "")
	}
	for _, query := range []string{
		"resourceVersionMatch=Exact", "resourceVersion=0&resourceVersionMatch=Exact", "resourceVersion=1&resourceVersionMatch=Nonsense",
		"sendInitialEvents=true", "watch=true&sendInitialEvents=true", "watch=true&resourceVersion=1&resourceVersionMatch=Exact",
	} {
		r := c.send(http.MethodGet, c.all()+"?"+query, "")
		if r.code != http.StatusUnprocessableEntity && r.code != http.StatusBadRequest {
			c.Errorf("%s: %d %.300s", query, r.code, r.body)
		}
	}
}

func (c *conformance) pages() {
	want := []string{"a", "b", "c", "d", "e"}
	for _, name := range want {
		c.createLabelled(name)
	}
	var got []string
	query, version := "limit=2", ""
	for page := 0; ; page++ {
		names, l := c.list(c.label() + "&" + query)
		got = append(got, names...)
		if len(l.Items) > 2 {
			c.Errorf("a page of %d objects", len(l.Items))
		}
		if version == "" {
			version = l.GetResourceVersion()
		}
		if l.GetResourceVersion() != version {
			c.Errorf("page %d is of version %s, and the first one of %s", page, l.GetResourceVersion(), version)
		}
		if l.GetContinue() == "" {
			break
		}
		if page == 0 {
			// The list does not have objects that were created after its first page.
			c.createLabelled("aa")
			c.createLabelled("f")
		}
		query = "limit=2&continue=" + url.QueryEscape(l.GetContinue())
	}
	if !slices.Equal(got, want) {
		c.Errorf("in pages: %v, want %v", got, want)
	}
	if got, _ = c.list(c.label() + "&resourceVersion=" + version + "&resourceVersionMatch=Exact"); !slices.Equal(got, want) {
		c.Errorf("at version %s: %v, want %v", version, got, want)
	}
	if got, _ = c.list(c.label() + "&resourceVersion=" + version + "&resourceVersionMatch=NotOlderThan"); len(got) < 5 {
		c.Errorf("not older than version %s: %v", version, got)
	}
}

func (c *conformance) deleteCollection() {
	for _, name := range []string{"a", "b", "c"} {
		c.createLabelled(name)
	}
	only := "labelSelector=" + url.QueryEscape("rule="+c.prefix+",letter!=c")
	c.want(http.StatusOK, http.MethodDelete, c.all()+"?dryRun=All&"+only, "")
	if got, _ := c.list(c.label()); len(got) != 3 {
		c.Errorf("after a dry run: %v", got)
	}
	c.want(http.StatusOK, http.MethodDelete, c.all()+"?"+only, "")
	if got, _ := c.list(c.label()); !slices.Equal(got, []string{"c"}) {
		c.Errorf("what is left: %v", got)
	}
}

// event is one of a watch.
type event struct {
	Type   string
	Object json.RawMessage
}

// watching begins a watch; next reads one event after the other, and is "" at its end.
func (c *conformance) watching(query string, headers ...string) (next func() (string, *unstructured.Unstructured)) {
	c.Helper()
	r, err := http.NewRequestWithContext(c.Context(), http.MethodGet, c.url+c.all()+"?watch=true&timeoutSeconds=20&"+query, nil)
	if err != nil {
		c.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	resp, err := c.client.Do(r)
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		c.Fatalf("watch %s: %s", query, resp.Status)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 4<<20)
	return func() (string, *unstructured.Unstructured) {
		c.Helper()
		if !lines.Scan() {
			return "", nil
		}
		var e event
		u := &unstructured.Unstructured{}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			c.Fatalf("%s: %v", lines.Text(), err)
		}
		if err := json.Unmarshal(e.Object, &u.Object); err != nil {
			c.Fatalf("%s: %v", lines.Text(), err)
		}
		return e.Type, u
	}
}

func (c *conformance) watch() {
	_, l := c.list(c.label())
	selected := c.watching(c.label() + "&resourceVersion=" + l.GetResourceVersion())
	named := c.watching("fieldSelector=metadata.name%3D" + c.name("b") + "&resourceVersion=" + l.GetResourceVersion())
	table := c.watching(c.label()+"&resourceVersion="+l.GetResourceVersion(), "Accept: application/json;as=Table;v=v1;g=meta.k8s.io")
	c.createLabelled("a")
	c.create("unlabelled")
	c.createLabelled("b")
	c.want(http.StatusOK, http.MethodPatch, c.one("b"), labelled("1"), mergePatch)
	c.want(http.StatusOK, http.MethodDelete, c.one("a"), "")
	// An object that no longer fits the selector is gone for those who watch by it.
	c.want(http.StatusOK, http.MethodPatch, c.one("b"), `{"metadata":{"labels":null}}`, mergePatch)
	for _, want := range []string{"ADDED a", "ADDED b", "MODIFIED b", "DELETED a", "DELETED b"} {
		typ, u := selected()
		if u == nil {
			c.Fatalf("the watch ended before %s", want)
		}
		if got := typ + " " + strings.TrimPrefix(u.GetName(), c.prefix+"-"); got != want {
			c.Errorf("by label: %s, want %s", got, want)
		}
	}
	for _, want := range []string{"ADDED", "MODIFIED", "MODIFIED"} {
		if typ, u := named(); typ != want || u.GetName() != c.name("b") {
			c.Errorf("by name: %s %v, want %s", typ, u, want)
		}
	}
	if typ, u := table(); typ != "ADDED" || u.GetKind() != "Table" {
		c.Errorf("as a table: %s %v", typ, u)
	}
}

func (c *conformance) watchList() {
	for _, name := range []string{"a", "b"} {
		c.createLabelled(name)
	}
	next := c.watching(c.label() + "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true")
	seen := map[string]bool{}
	for range 2 {
		typ, u := next()
		if typ != "ADDED" {
			c.Fatalf("initial event %s %v", typ, u)
		}
		seen[strings.TrimPrefix(u.GetName(), c.prefix+"-")] = true
	}
	if !seen["a"] || !seen["b"] {
		c.Errorf("initial events of %v", seen)
	}
	typ, u := next()
	if typ != "BOOKMARK" || u.GetAnnotations()[metav1.InitialEventsAnnotationKey] != "true" || u.GetResourceVersion() == "" || u.GetKind() != c.kind.kind {
		c.Fatalf("end of the initial events: %s %v", typ, u)
	}
	c.createLabelled("c")
	for typ == "BOOKMARK" {
		typ, u = next()
	}
	if typ != "ADDED" || u.GetName() != c.name("c") {
		c.Errorf("what came later: %s %v", typ, u)
	}
}
