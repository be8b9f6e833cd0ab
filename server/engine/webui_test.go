package engine_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/hykube/hykube/server/engine"
)

func TestUIHandler(t *testing.T) {
	e, err := engine.New(engine.Config{DataDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(e.UIHandler())
	t.Cleanup(server.Close)
	if code, _, _ := get(t, server, "/temporal/"); code != http.StatusServiceUnavailable {
		t.Errorf("before start: %d", code)
	}
	if err := e.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, e) })

	code, header, page := get(t, server, "/temporal/namespaces/hykube/workflows")
	if code != http.StatusOK || !strings.HasPrefix(header.Get("Content-Type"), "text/html") || !strings.Contains(page, `base: "/temporal"`) {
		t.Fatalf("page: %d %s\n%s", code, header, page)
	}
	if !strings.Contains(header.Get("Content-Security-Policy"), "frame-ancestors 'none'") {
		t.Errorf("the page has no content security policy: %v", header)
	}
	for _, script := range regexp.MustCompile(`(?s)<script>(.*?)</script>`).FindAllStringSubmatch(page, -1) {
		sum := sha256.Sum256([]byte(script[1]))
		if hash := "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; !strings.Contains(header.Get("Content-Security-Policy"), hash) {
			t.Errorf("the content security policy does not permit the script %s", script[1])
		}
	}
	if !strings.Contains(page, `"hykube":[{"label":"Status"},{"label":"HykubePlan"}`) {
		t.Errorf("the page sets no columns\n%s", page)
	}
	assets := regexp.MustCompile(`"(/temporal/_app/[^"]+)"`).FindAllStringSubmatch(page, -1)
	if len(assets) < 3 {
		t.Fatalf("the page refers to %d assets\n%s", len(assets), page)
	}
	for _, asset := range assets {
		if code, header, _ := get(t, server, asset[1]); code != http.StatusOK || !strings.Contains(header.Get("Content-Type"), "javascript") {
			t.Errorf("%s: %d %s", asset[1], code, header.Get("Content-Type"))
		}
	}
	if strings.Contains(page, `"/_app/`) {
		t.Error("an asset lacks the prefix")
	}

	tests := []struct {
		name, method, path string
		want               int
		contains           string
	}{
		{"the bare prefix leads to the page", http.MethodGet, "/temporal", http.StatusOK, "<!doctype html>"},
		{"a missing asset is not the page", http.MethodGet, "/temporal/_app/immutable/none.js", http.StatusNotFound, ""},
		{"namespaces come from Temporal", http.MethodGet, "/temporal/api/v1/namespaces", http.StatusOK, `"name": "hykube"`},
		{"settings say read-only", http.MethodGet, "/temporal/api/v1/settings", http.StatusOK, `"DisableWriteActions":true`},
		{"no request for the latest release", http.MethodGet, "/temporal/api/v1/releases", http.StatusOK, `"Releases":{}`},
		{"nothing is terminated from there", http.MethodPost, "/temporal/api/v1/namespaces/hykube/workflows/x/terminate", http.StatusMethodNotAllowed, ""},
		{"no workflow is started from there", http.MethodPost, "/temporal/api/v1/namespaces/hykube/workflows/x", http.StatusMethodNotAllowed, ""},
		{"no namespace is changed from there", http.MethodPut, "/temporal/api/v1/namespaces/hykube", http.StatusMethodNotAllowed, ""},
		{"nothing is deleted from there", http.MethodDelete, "/temporal/api/v1/namespaces/hykube", http.StatusMethodNotAllowed, ""},
		{"a query in the path opens no door", http.MethodPost, "/temporal/api/v1/namespaces/hykube/workflows/query/terminate", http.StatusMethodNotAllowed, ""},
		{"nor one that is hidden in it", http.MethodPost, "/temporal/api/v1/namespaces/hykube/workflows/a%2Fquery%2Fb/terminate", http.StatusMethodNotAllowed, ""},
		{"a query is allowed", http.MethodPost, "/temporal/api/v1/namespaces/hykube/workflows/x/query/__stack_trace", http.StatusNotFound, "workflow not found"},
		{"nothing lies beside the prefix", http.MethodGet, "/other", http.StatusNotFound, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			request, err := http.NewRequestWithContext(t.Context(), test.method, server.URL+test.path, strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Authorization", "Bearer secret")
			code, _, body := do(t, server, request)
			if code != test.want || !strings.Contains(body, test.contains) {
				t.Errorf("%s %s: got %d, want %d with %q\n%s", test.method, test.path, code, test.want, test.contains, body)
			}
			if strings.HasSuffix(test.path, "/api/v1/namespaces") && !json.Valid([]byte(body)) {
				t.Errorf("not JSON: %s", body)
			}
		})
	}
}

func get(t *testing.T, server *httptest.Server, path string) (int, http.Header, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return do(t, server, request)
}

func do(t *testing.T, server *httptest.Server, request *http.Request) (int, http.Header, string) {
	t.Helper()
	response, err := server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Header, string(body)
}
