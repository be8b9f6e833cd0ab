package server

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/server/healthz"
)

func TestLinesOfAHealthCheck(t *testing.T) {
	broken := errors.New("broken")
	began := time.Now()
	type look struct {
		after time.Duration
		err   error
		want  checkLine
	}
	for reason, looks := range map[string][]look{
		"a check that passes":                  {{0, nil, checkQuiet}, {time.Hour, nil, checkQuiet}},
		"a part that starts":                   {{0, broken, checkQuiet}, {time.Second, broken, checkQuiet}, {2 * time.Second, nil, checkQuiet}},
		"a part that never starts":             {{0, broken, checkQuiet}, {2 * startingTime, broken, checkBegan}, {time.Hour, broken, checkQuiet}},
		"one line for a failure, and one more": {{0, nil, checkQuiet}, {1, broken, checkBegan}, {2, broken, checkQuiet}, {3, nil, checkEnded}, {4, nil, checkQuiet}},
		"a failure that comes back":            {{0, nil, checkQuiet}, {1, broken, checkBegan}, {2, nil, checkEnded}, {3, broken, checkBegan}},
	} {
		t.Run(reason, func(t *testing.T) {
			s := checkState{began: began}
			for i, l := range looks {
				if got := s.next(began.Add(l.after), l.err); got != l.want {
					t.Errorf("look %d: line %d, want %d", i, got, l.want)
				}
			}
		})
	}
}

// TestReasonsOfFailedChecks asks for the health as users with different rights.
func TestReasonsOfFailedChecks(t *testing.T) {
	var log bytes.Buffer
	health := &healthLog{log: slog.New(slog.NewTextHandler(&log, nil))}
	var failing atomic.Bool
	checks := health.wrap(
		healthz.NamedCheck("storage", func(*http.Request) error {
			if failing.Load() {
				return errors.New("ask database: gone")
			}
			return nil
		}),
		healthz.NamedCheck("engine", func(*http.Request) error { return nil }),
	)
	mux := http.NewServeMux()
	healthz.InstallReadyzHandler(mux, checks...)
	allowed := authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		if a.GetUser().GetName() == "admin" && a.GetPath() == "/readyz/storage" && a.GetVerb() == "get" && !a.IsResourceRequest() {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "", nil
	})
	handler := withReasons(mux, allowed)
	get := func(name string) (int, string) {
		r := httptest.NewRequest(http.MethodGet, "/readyz?verbose", nil)
		if name != "" {
			r = r.WithContext(request.WithUser(r.Context(), &user.DefaultInfo{Name: name}))
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	if code, text := get("admin"); code != http.StatusOK || !strings.Contains(text, "[+]storage ok") {
		t.Errorf("healthy: %d %s", code, text)
	}
	failing.Store(true)
	for name, want := range map[string]string{
		"admin": "[-]storage failed: ask database: gone\n", "other": "[-]storage failed: reason withheld\n", "": "[-]storage failed: reason withheld\n",
	} {
		if code, text := get(name); code != http.StatusInternalServerError || !strings.Contains(text, want) || !strings.Contains(text, "[+]engine ok") {
			t.Errorf("user %q: %d %s", name, code, text)
		}
	}
	failing.Store(false)
	get("admin")
	lines := slices.Collect(strings.Lines(log.String()))
	if len(lines) != 2 || !strings.Contains(lines[0], "check=storage error=\"ask database: gone\"") || !strings.Contains(lines[1], "passes again") {
		t.Errorf("log: %s", log.String())
	}
}
