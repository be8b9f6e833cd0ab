package server_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/server"
	"github.com/hykube/hykube/server/storage"
)

// TestCompactedVersionsAreExpired asks for what the database has forgotten: the rest of a list, and the events after
// it. A client must learn that it has to list anew. The watch cache of built-in kinds knows old versions for longer
// than a test can wait; see the next test.
func TestCompactedVersionsAreExpired(t *testing.T) {
	s := startT(t, server.Config{DataDir: t.TempDir(), Wire: testWiring, Compaction: storage.Compaction{Interval: 100 * time.Millisecond, Retain: 1}})
	for _, k := range servedKinds(t, s.admin()) {
		if !k.provided() {
			continue
		}
		t.Run(k.String(), func(t *testing.T) {
			t.Parallel()
			c := newConformance(t, s, k, metav1.NamespaceDefault)
			c.prefix = "expired"
			for _, name := range []string{"a", "b", "c"} {
				c.createLabelled(name)
			}
			first, l := c.list(c.label() + "&limit=1")
			rest := c.all() + "?" + c.label() + "&limit=10&continue=" + url.QueryEscape(l.GetContinue())
			gone := c.expired(rest)
			// The next page continues the list with the current objects.
			names, _ := c.list(c.label() + "&limit=10&continue=" + url.QueryEscape(gone.status().Continue))
			if all := slices.Concat(first, names); gone.status().Continue == "" || strings.Join(all, " ") != "a b c" {
				t.Errorf("%v after the end of the first page with %q", all, gone.status().Continue)
			}
			if !c.forgotten(l.GetResourceVersion()) {
				t.Errorf("a watch from version %s begins", l.GetResourceVersion())
			}
		})
	}
}

// TestCompactedVersionsOfBuiltInKindsAreExpired asks a server that started again, whose watch cache knows no old
// versions.
func TestCompactedVersionsOfBuiltInKindsAreExpired(t *testing.T) {
	config := server.Config{DataDir: t.TempDir(), Wire: testWiring, Compaction: storage.Compaction{Interval: 100 * time.Millisecond, Retain: 1}}
	s := startT(t, config)
	type position struct {
		kind                  apiKind
		prefix, version, rest string
	}
	var before []position
	for _, k := range servedKinds(t, s.admin()) {
		if k.provided() || readOnly[k.String()] != "" || !k.has("create", "list", "patch", "watch") {
			continue
		}
		c := newConformance(t, s, k, metav1.NamespaceDefault)
		c.prefix = fmt.Sprintf("expired-%d", len(before)) // events are one kind in two groups
		for _, name := range []string{"a", "b", "c"} {
			c.createLabelled(name)
		}
		_, l := c.list(c.label() + "&limit=1")
		before = append(before, position{k, c.prefix, l.GetResourceVersion(), l.GetContinue()})
		c.want(http.StatusOK, http.MethodPatch, c.one("c"), labelled("later"), mergePatch)
	}
	if len(before) < 10 {
		t.Fatalf("%d built-in kinds", len(before))
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	s = startT(t, config)
	for _, p := range before {
		t.Run(p.kind.String(), func(t *testing.T) {
			c := newConformance(t, s, p.kind, metav1.NamespaceDefault)
			c.prefix = p.prefix
			rest := c.all() + "?" + c.label() + "&limit=10&continue=" + url.QueryEscape(p.rest)
			c.expired(rest)
			if !c.forgotten(p.version) {
				t.Errorf("a watch from version %s begins", p.version)
			}
		})
	}
}

// expired changes the object c until the server answers a request for the rest of a list with Expired, and returns that
// answer.
func (c *conformance) expired(rest string) (answer reply) {
	c.Helper()
	writes := 0
	eventually(c.T, "the version is compacted", func() bool {
		writes++
		c.want(http.StatusOK, http.MethodPatch, c.one("c"), labelled(strconv.Itoa(writes)), mergePatch)
		answer = c.send(http.MethodGet, rest, "")
		return answer.code != http.StatusOK
	})
	c.is(answer, http.StatusGone, "the rest of the list")
	if reason := answer.status().Reason; reason != metav1.StatusReasonExpired {
		c.Errorf("reason %q", reason)
	}
	return answer
}

// forgotten reports whether a watch is rejected because the database no longer has the events after a version.
func (c *conformance) forgotten(version string) bool {
	c.Helper()
	const events = "watch=true&timeoutSeconds=1&"
	r := c.send(http.MethodGet, c.all()+"?"+events+c.label()+"&resourceVersion="+version, "")
	if r.code == http.StatusGone {
		return true
	}
	if r.code != http.StatusOK {
		c.Fatalf("watch: %d %.300s", r.code, r.body)
	}
	for line := range strings.Lines(r.body) {
		if strings.Contains(line, `"type":"ERROR"`) {
			if !strings.Contains(line, fmt.Sprintf(`"code":%d`, http.StatusGone)) {
				c.Errorf("watch: %s", line)
			}
			return true
		}
	}
	return false
}
