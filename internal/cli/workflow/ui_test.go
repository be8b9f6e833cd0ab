package workflow

import (
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/hykube/hykube/api/v1alpha1"
)

func TestUIProxy(t *testing.T) {
	var got *http.Request
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Clone(t.Context())
		http.SetCookie(w, &http.Cookie{Name: "_csrf", Value: "x", Secure: true, Domain: "example.org"})
		_, _ = w.Write([]byte("hello from " + r.URL.Path))
	}))
	defer server.Close()
	p, err := newUIProxy(&rest.Config{Host: server.URL, BearerToken: "secret", TLSClientConfig: rest.TLSClientConfig{Insecure: true}}, "key")
	if err != nil {
		t.Fatal(err)
	}
	local := httptest.NewServer(p)
	defer local.Close()
	p.host = strings.TrimPrefix(local.URL, "http://")
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(c *http.Client, method, path string, header http.Header) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, local.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for k, v := range header {
			req.Header[k] = v
		}
		if h := header.Get("Host"); h != "" {
			req.Host = h
		}
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b := make([]byte, 200)
		n, _ := resp.Body.Read(b)
		return resp.StatusCode, string(b[:n])
	}
	stranger, friend := &http.Client{}, &http.Client{Jar: jar}
	if code, _ := ask(stranger, "GET", "/temporal/", nil); code != http.StatusForbidden || got != nil {
		t.Errorf("without the key: %d", code)
	}
	if code, _ := ask(stranger, "GET", "/enter/wrong", nil); code != http.StatusForbidden {
		t.Errorf("with a wrong key: %d", code)
	}
	if code, body := ask(friend, "GET", "/enter/key", nil); code != 200 || body != "hello from /temporal/" {
		t.Errorf("with the key: %d %s", code, body)
	}
	if got.Header.Get("Authorization") != "Bearer secret" {
		t.Errorf("the server sees %q", got.Header)
	}
	if code, _ := ask(friend, "GET", "/temporal/x", http.Header{"Authorization": {"Bearer other"}, "Impersonate-User": {"admin"}}); code != 200 || got.Header.Get("Authorization") != "Bearer secret" || got.Header.Get("Impersonate-User") != "" {
		t.Errorf("the browser's own credentials came through: %v", got.Header)
	}
	if strings.Contains(got.Header.Get("Cookie"), "key") || !strings.Contains(got.Header.Get("Cookie"), "_csrf=x") {
		t.Errorf("cookies at the server: %q", got.Header.Get("Cookie"))
	}
	p.page = "/temporal/namespaces/hykube/workflows/apply.prod.p.u"
	if code, body := ask(friend, "GET", "/enter/key", nil); code != 200 || body != "hello from "+p.page {
		t.Errorf("the address of a plan's run leads to: %d %s", code, body)
	}
	for _, tc := range []struct {
		reason, method, path string
		header               http.Header
		code                 int
	}{
		{"another host, as DNS rebinding makes it", "GET", "/temporal/", http.Header{"Host": {"evil.example"}}, http.StatusMisdirectedRequest},
		{"a change from another page", "POST", "/temporal/api", http.Header{"Origin": {"https://evil.example"}}, http.StatusForbidden},
		{"a change from nowhere", "POST", "/temporal/api", nil, http.StatusForbidden},
		{"a change from the Web UI", "POST", "/temporal/api", http.Header{"Origin": {local.URL}}, http.StatusOK},
		{"the API", "GET", "/api/v1/secrets", nil, http.StatusNotFound},
		{"the API by way of the Web UI", "GET", "/temporal/../api/v1/secrets", nil, http.StatusNotFound},
		{"the same, encoded", "GET", "/temporal/%2e%2e/api/v1/secrets", nil, http.StatusNotFound},
	} {
		if code, _ := ask(friend, tc.method, tc.path, tc.header); code != tc.code {
			t.Errorf("%s: %d, want %d", tc.reason, code, tc.code)
		}
	}
}

func TestUIOpensTheRunOfAPlan(t *testing.T) {
	for reason, tc := range map[string]struct {
		runs       *v1alpha1.PlanRuns
		want, fail string
	}{
		"an applied plan":           {&v1alpha1.PlanRuns{Plan: "plan.prod.p.u", Apply: "apply.prod.p.u"}, "/temporal/namespaces/hykube/workflows/apply.prod.p.u", ""},
		"a plan that was only made": {&v1alpha1.PlanRuns{Plan: "plan.prod.p.u"}, "/temporal/namespaces/hykube/workflows/plan.prod.p.u", ""},
		"a plan without a workflow": {nil, "", `plan "p" has no run yet`},
	} {
		t.Run(reason, func(t *testing.T) {
			p := &v1alpha1.Plan{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Status: v1alpha1.PlanStatus{Runs: tc.runs}}
			got, err := runPage(p)
			if got != tc.want || (tc.fail == "") != (err == nil) || err != nil && err.Error() != tc.fail {
				t.Errorf("got %q, %v; want %q, %q", got, err, tc.want, tc.fail)
			}
		})
	}
}
