package access_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"

	"github.com/hykube/hykube/server/access"
)

// locked is a log that a test reads while it is written.
type locked struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestTokenFileIsReadAgain(t *testing.T) {
	path, dir := filepath.Join(t.TempDir(), "tokens.csv"), t.TempDir()
	put := func(text string) {
		t.Helper()
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	put("one,alice,a\n")
	ca, err := dynamiccertificates.NewDynamicCAContentFromFile("client-ca", openCerts(t, dir, time.Now()).ClientCA())
	if err != nil {
		t.Fatal(err)
	}
	log, metrics := &locked{}, prometheus.NewRegistry()
	cfg := access.AuthenticationConfig{ClientCA: ca, TokenFile: path, Metrics: metrics, Logger: slog.New(slog.NewTextHandler(log, nil))}
	auth, err := access.NewAuthenticator(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	user := func(token string) string {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		answer, ok, _ := auth.AuthenticateRequest(r)
		if !ok {
			return ""
		}
		return answer.User.GetName()
	}
	broken := func() float64 {
		all, err := metrics.Gather()
		if err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		return all[0].GetMetric()[0].GetGauge().GetValue()
	}
	eventually := func(what string, ok func() bool) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("not in time: %s\n%s", what, log)
			}
		}
	}
	if user("one") != "alice" || broken() != 0 {
		t.Fatalf("alice is %q", user("one"))
	}
	put("two,bob,b\n")
	eventually("a new token is known, and the old one is not", func() bool { return user("two") == "bob" && user("one") == "" })

	put("three,carol,c\nbroken\n")
	eventually("a broken file is noticed", func() bool { return broken() == 1 })
	if user("two") != "bob" || user("three") != "" {
		t.Errorf("a broken file is taken in part: %q %q", user("two"), user("three"))
	}
	if !strings.Contains(log.String(), "the tokens that were read before stay valid") || strings.Contains(log.String(), "three") {
		t.Errorf("the log says:\n%s", log)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	put("four,dave,d\n")
	eventually("a good file is taken again", func() bool { return user("four") == "dave" && broken() == 0 })

	put("broken\n")
	if _, err := access.NewAuthenticator(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "read token file") {
		t.Errorf("a server starts with a broken file: %v", err)
	}
}
