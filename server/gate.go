package server

import (
	"context"
	"crypto/subtle"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
)

const (
	// retryAfter is how many seconds a client should wait that comes too early or too late.
	retryAfter = 1
	// gatePoll is how often a starting server asks itself whether it is ready.
	gatePoll = 20 * time.Millisecond
	// gateCheck is the name of the readiness check that fails until the gate is open.
	gateCheck = "requests"
)

// gate answers 503 until the server is ready for the first time, and from the moment on that it stops. Before, some kinds are
// not served and some rights not known yet: clients would take 404 to mean that a kind was removed, and 403 that a right was.
// Probes pass, and so does the server itself.
type gate struct {
	token string
	open  atomic.Bool
}

// wrap puts the gate in front of a handler.
func (g *gate) wrap(inner http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.open.Load() || probe(r.URL.Path) || g.own(r) {
			inner.ServeHTTP(w, r)
			return
		}
		err := apierrors.NewServiceUnavailable("The server is starting or stopping, and does not serve all kinds now. Try again in a moment.")
		err.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: retryAfter}
		w.Header().Set("Cache-Control", "no-cache, private") // kubectl keeps an answer on its disk otherwise
		responsewriters.ErrorNegotiated(err, legacyscheme.Codecs, schema.GroupVersion{}, w, r)
	})
}

func probe(path string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return first == "livez" || first == "readyz" || first == "healthz"
}

// own tells whether the server asks itself.
func (g *gate) own(r *http.Request) bool {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return ok && subtle.ConstantTimeCompare([]byte(token), []byte(g.token)) == 1
}

func (g *gate) check(*http.Request) error {
	if !g.open.Load() {
		return errors.New("the server does not take requests yet, or no longer")
	}
	return nil
}

// openWhenReady opens the gate once every other readiness check passes. It returns false when ctx ends before.
func (g *gate) openWhenReady(ctx context.Context, client kubernetes.Interface) bool {
	ticker := time.NewTicker(gatePoll)
	defer ticker.Stop()
	for ctx.Err() == nil {
		if client.Discovery().RESTClient().Get().AbsPath("/readyz").Param("exclude", gateCheck).Do(ctx).Error() == nil {
			g.open.Store(true)
			return true
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
	return false
}

func (g *gate) close() { g.open.Store(false) }
