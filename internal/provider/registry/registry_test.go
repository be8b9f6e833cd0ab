package registry

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The tests of the installer cover signatures, checksums and whole installs. These tests cover the client's requests.

func serve(t *testing.T, h http.HandlerFunc) (*Client, *url.URL) {
	t.Helper()
	s := httptest.NewTLSServer(h)
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	return New(Config{HTTP: s.Client(), Backoff: time.Millisecond, Token: func(string) string { return "s3cret" }}), u
}

func TestDocumentRefuses(t *testing.T) {
	for _, tc := range []struct {
		why  string
		h    http.HandlerFunc
		want string
	}{
		{"a redirect away from TLS", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://example.com/x?signature=hunter2", http.StatusFound)
		}, "http://example.com/x, which is not https"},
		{"a redirect in circles", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) }, "redirected ten times"},
		{"an endless answer", func(w http.ResponseWriter, r *http.Request) {
			chunk := make([]byte, 1<<20)
			for r.Context().Err() == nil {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		}, "larger than"},
		{"something that is not JSON", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }, "not the JSON"},
		{"a bad request", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) }, "400 Bad Request"},
		{"a place without TLS", nil, "only https"},
	} {
		t.Run(tc.why, func(t *testing.T) {
			c, u := serve(t, tc.h)
			if tc.h == nil {
				u.Scheme = "http"
			}
			u.RawQuery = "token=hunter2"
			_, err := c.jsonDocument(t.Context(), u, "", new(any))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error gives a secret away: %v", err)
			}
		})
	}
}

func TestUntrustedCertificate(t *testing.T) {
	requests := 0
	_, u := serve(t, func(http.ResponseWriter, *http.Request) { requests++ })
	_, err := New(Config{Backoff: time.Hour}).jsonDocument(t.Context(), u, "", new(any)) // an hour: it must not be retried
	if err == nil || !strings.Contains(err.Error(), "certificate") || requests != 0 {
		t.Errorf("got %v after %d requests, want a refusal", err, requests)
	}
}

func TestRetries(t *testing.T) {
	n := 0
	c, u := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		n++
		switch n {
		case 1:
			w.WriteHeader(http.StatusTooManyRequests)
		case 2:
			panic(http.ErrAbortHandler) // the connection breaks
		default:
			_, _ = w.Write([]byte(`{}`))
		}
	})
	if _, err := c.jsonDocument(t.Context(), u, "", new(any)); err != nil || n != 3 {
		t.Errorf("after %d requests: %v", n, err)
	}
	n = 0
	slow, u := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	if _, err := slow.jsonDocument(ctx, u, "", new(any)); err == nil || time.Since(start) > 5*time.Second {
		t.Errorf("a wait outlived its context: %v after %v", err, time.Since(start))
	}
}

// TestTokenIsSentToItsHostAlone has a registry that stores its packages elsewhere.
func TestTokenIsSentToItsHostAlone(t *testing.T) {
	var elsewhere *url.URL
	_, elsewhere = serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("the registry's token was sent to where packages are stored")
		}
		_, _ = w.Write([]byte("package"))
	})
	_, home := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer s3cret" {
			t.Error("the registry got no token")
		}
		_, _ = w.Write([]byte(`{"archives": {"linux_amd64": {"url": "` + elsewhere.String() + `/p.zip"}}}`))
	})
	c := New(Config{HTTP: &http.Client{Transport: insecure()}, Token: func(host string) string {
		if host == home.Host {
			return "s3cret"
		}
		return ""
	}})
	m, err := c.Mirror(home.String(), "example.com", "a", "b")
	if err != nil {
		t.Fatal(err)
	}
	archives, err := m.Archives(t.Context(), "1.0.0")
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sum, err := m.Download(t.Context(), archives["linux_amd64"], f)
	raw := sha256.Sum256([]byte("package"))
	if err != nil || sum != hex.EncodeToString(raw[:]) {
		t.Errorf("download = %s, %v", sum, err)
	}
	a := archives["linux_amd64"]
	a.Hashes = []string{"zh:" + strings.Repeat("0", 64)}
	_, err = m.Download(t.Context(), a, f)
	if _, ok := errors.AsType[*ChecksumError](err); !ok {
		t.Errorf("wrong zh: %v, want a ChecksumError", err)
	}
}

// insecure trusts both test servers.
func insecure() http.RoundTripper {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.TLSClientConfig.InsecureSkipVerify = true
	return t
}

func TestFindSum(t *testing.T) {
	sum := strings.Repeat("ab", 32)
	list := []byte(sum + "  a.zip\n" + strings.ToUpper(sum) + " *b.zip\nshort  c.zip\n")
	for name, want := range map[string]bool{"a.zip": true, "b.zip": true, "c.zip": false, "d.zip": false, "": false} {
		if got, ok := findSum(list, name); ok != want || ok && got != sum {
			t.Errorf("findSum(%q) = %q, %v; want %v", name, got, ok, want)
		}
	}
}
