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
	// retryAfter is the value of the Retry-After header in seconds.
	retryAfter = 1
	// gatePoll is the interval at which a starting server checks its own readiness.
	gatePoll = 20 * time.Millisecond
	// gateCheck is the name of the readiness check that fails until the gate is open.
	gateCheck = "requests"
)

// gate responds with 503 until the server is ready for the first time, and again when it stops. Until then, some kinds
// and rights are not loaded. Clients would take a 404 as a removed kind, and a 403 as a removed right. The gate does
// not apply to probes and to the server's own requests.
type gate struct {
	token string
	// worker keeps the gate closed for all others, except for the end of the audit log.
	worker bool
	open   atomic.Bool
}

// wrap returns a handler with the gate before inner.
func (g *gate) wrap(inner http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.open.Load() && (!g.worker || r.URL.Path == auditHeadPath) || probe(r.URL.Path) || g.fromServer(r) {
			inner.ServeHTTP(w, r)
			return
		}
		why := "The server is starting or stopping, and does not serve all kinds now. Try again in a moment."
		if g.worker {
			why = "This is a worker, which answers probes only. Use the address of the server."
		}
		err := apierrors.NewServiceUnavailable(why)
		err.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: retryAfter}
		w.Header().Set("Cache-Control", "no-cache, private") // otherwise kubectl caches the response on disk
		responsewriters.ErrorNegotiated(err, legacyscheme.Codecs, schema.GroupVersion{}, w, r)
	})
}

func probe(path string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return first == "livez" || first == "readyz" || first == "healthz"
}

// fromServer reports whether the server itself sent the request.
func (g *gate) fromServer(r *http.Request) bool {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return ok && subtle.ConstantTimeCompare([]byte(token), []byte(g.token)) == 1
}

func (g *gate) check(*http.Request) error {
	if !g.open.Load() {
		return errors.New("the server is starting or stopping, and does not accept requests")
	}
	return nil
}

// openWhenReady opens the gate when every other readiness check passes, except the one for disk space: a server with a
// full disk serves reads and deletions. It returns false if ctx ends first.
func (g *gate) openWhenReady(ctx context.Context, client kubernetes.Interface) bool {
	ticker := time.NewTicker(gatePoll)
	defer ticker.Stop()
	for ctx.Err() == nil {
		if client.Discovery().RESTClient().Get().AbsPath("/readyz").Param("exclude", gateCheck).Param("exclude",
			spaceCheck).Do(ctx).Error() == nil {
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
