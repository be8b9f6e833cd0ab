package server

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/server/healthz"
)

// This file says why health checks fail: in the log, and in the answers of /livez and /readyz. Kubernetes' handlers
// withhold the reasons, because everyone may read these paths.

const (
	// healthInterval is the time between two looks of the server at its own checks.
	healthInterval = 10 * time.Second
	// startingTime is the time for which a check may fail after the start without a line in the log.
	startingTime = time.Minute
)

// healthLog logs when a health check begins to fail, and when it no longer fails.
type healthLog struct {
	log    *slog.Logger
	mu     sync.Mutex
	checks []*loggedCheck
}

// wrap returns checks that log.
func (h *healthLog) wrap(checks ...healthz.HealthChecker) (wrapped []healthz.HealthChecker) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range checks {
		logged := &loggedCheck{HealthChecker: c, log: h.log, state: checkState{began: time.Now()}}
		h.checks = append(h.checks, logged)
		wrapped = append(wrapped, logged)
	}
	return wrapped
}

// run looks at all checks until ctx ends, so that the log has a line also where nothing probes the server.
func (h *healthLog) run(ctx context.Context) {
	ticker := time.NewTicker(healthInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		probe, err := http.NewRequestWithContext(ctx, http.MethodGet, "/readyz", nil)
		if err != nil {
			return
		}
		h.mu.Lock()
		checks := h.checks
		h.mu.Unlock()
		for _, c := range checks {
			_ = c.Check(probe)
		}
	}
}

// loggedCheck is a health check that logs its failures.
type loggedCheck struct {
	healthz.HealthChecker
	log   *slog.Logger
	mu    sync.Mutex
	state checkState
}

// Check implements healthz.HealthChecker.
func (c *loggedCheck) Check(r *http.Request) error {
	err := c.HealthChecker.Check(r)
	if failed, ok := r.Context().Value(failedKey{}).(*failedChecks); ok && err != nil {
		failed.add(c.Name(), err)
	}
	if r.Context().Err() != nil {
		return err // the client or the server has gone, which is not the part's fault
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch c.state.next(time.Now(), err) {
	case checkBegan:
		c.log.Warn("a health check fails", "check", c.Name(), "error", err)
	case checkEnded:
		c.log.Info("a health check passes again", "check", c.Name())
	}
	return err
}

// checkState decides which results of a check get a line in the log.
type checkState struct {
	// began is the time of the start.
	began time.Time
	// passed is true once the check has passed, and reported while a failure is in the log.
	passed, reported bool
}

type checkLine int

const (
	checkQuiet checkLine = iota
	checkBegan
	checkEnded
)

// next notes a result. Parts fail while they start, so that is no line for a while.
func (s *checkState) next(now time.Time, err error) checkLine {
	switch {
	case err == nil && s.reported:
		s.passed, s.reported = true, false
		return checkEnded
	case err == nil:
		s.passed = true
	case !s.reported && (s.passed || now.Sub(s.began) > startingTime):
		s.reported = true
		return checkBegan
	}
	return checkQuiet
}

// failedKey is the context key of a request's *failedChecks.
type failedKey struct{}

// failedChecks are the checks that failed for a request.
type failedChecks struct {
	mu      sync.Mutex
	reasons map[string]error
}

func (f *failedChecks) add(name string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reasons[name] = err
}

// withReasons gives the reasons of failed checks to those who may read the path of each check, such as /readyz/storage.
func withReasons(inner http.Handler, a authorizer.Authorizer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/livez" && r.URL.Path != "/readyz" && r.URL.Path != "/healthz" {
			inner.ServeHTTP(w, r)
			return
		}
		failed := &failedChecks{reasons: map[string]error{}}
		answer := &heldAnswer{ResponseWriter: w, status: http.StatusOK}
		inner.ServeHTTP(answer, r.WithContext(context.WithValue(r.Context(), failedKey{}, failed)))
		text := answer.body.String()
		for name, err := range failed.reasons {
			if mayRead(r, a, r.URL.Path+"/"+name) {
				start := "[-]" + name + " failed: "
				text = strings.Replace(text, start+"reason withheld\n",
					start+strings.ReplaceAll(err.Error(), "\n", "; ")+"\n", 1)
			}
		}
		w.Header().Del("Content-Length")
		w.WriteHeader(answer.status)
		_, _ = w.Write([]byte(text))
	})
}

// mayRead reports whether the user of a request may read another path.
func mayRead(r *http.Request, a authorizer.Authorizer, path string) bool {
	u, ok := request.UserFrom(r.Context())
	if !ok {
		return false
	}
	decision, _, err := a.Authorize(r.Context(), authorizer.AttributesRecord{User: u, Verb: "get", Path: path})
	return err == nil && decision == authorizer.DecisionAllow
}

// heldAnswer keeps an answer until it is complete.
type heldAnswer struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (a *heldAnswer) WriteHeader(status int) { a.status = status }

func (a *heldAnswer) Write(p []byte) (int, error) { return a.body.Write(p) }
