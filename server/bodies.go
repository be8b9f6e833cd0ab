package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/hykube/hykube/server/kinds"
)

const (
	// bodyTime is the maximum time that a client may take to send the body of a request.
	bodyTime = 30 * time.Second
	// bodyMemory is the maximum size of the bodies that all requests together hold, in bytes.
	bodyMemory = 256 << 20
	// bodyChunk is the number of bytes that one step of reading adds.
	bodyChunk = 32 << 10
	// bodyShare is the part of the memory, as its divisor, that requests may hold without a known user. When all
	// requests hold more, each must name its user, and the bodies of one user may hold no more than this part again.
	bodyShare = 4
)

// Errors of bodies that need too much memory: those of all requests, those of one user, and those without a user.
var (
	errBodyMemory  = errors.New("the server holds too many request bodies; try again later")
	errBodyShare   = errors.New("the server holds too many request bodies of this user; try again later")
	errBodyUnknown = errors.New("the server holds too many request bodies, and reads those of known users only")
)

// bodies reads the body of each request before Kubernetes' priority and fairness counts the request. Otherwise a client
// that sends half a body would occupy a seat, and a few such clients would stop all writes of others.
type bodies struct {
	time   time.Duration
	memory int64
	held   atomic.Int64
	// identify returns the name of the user of a request; false if it has none. It does not change the request.
	identify func(*http.Request) (string, bool)

	mu sync.Mutex
	// byUser is the number of bytes that the bodies of each user hold, as far as the user is known.
	byUser map[string]int64
}

// heldBody is the body of a request that arrives.
type heldBody struct {
	*bodies
	request *http.Request
	bytes.Buffer
	// user is the user for whom the body counts; empty if it counts for none yet.
	user string
}

// count counts n further bytes.
func (h *heldBody) count(n int64) error {
	all := h.held.Add(n)
	if all > h.memory {
		return errBodyMemory
	}
	if h.user == "" {
		if all <= h.memory/bodyShare {
			return nil
		}
		user, ok := h.identify(h.request)
		if !ok {
			return errBodyUnknown
		}
		h.user, n = user, int64(h.Len())
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.byUser == nil {
		h.byUser = map[string]int64{}
	}
	if h.byUser[h.user] += n; h.byUser[h.user] > h.memory/bodyShare {
		return errBodyShare
	}
	return nil
}

// release stops counting the body.
func (h *heldBody) release() {
	n := int64(h.Len())
	h.held.Add(-n)
	if h.user == "" {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.byUser[h.user] -= n; h.byUser[h.user] == 0 {
		delete(h.byUser, h.user)
	}
}

// wrap returns a handler that calls inner when the body of a request has arrived. It passes the part of a body that
// exceeds the limit on objects unread, because inner refuses it.
func (b *bodies) wrap(inner http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body == nil || r.Body == http.NoBody || r.Header.Get("Upgrade") != "" {
			inner.ServeHTTP(w, r)
			return
		}
		control := http.NewResponseController(w)
		_ = control.SetReadDeadline(time.Now().Add(b.time))
		body := &heldBody{bodies: b, request: r}
		err := body.read(r.Body)
		defer body.release()
		if err != nil {
			w.Header().Set("Connection", "close")
			refused := apierrors.NewTimeoutError(fmt.Sprintf("The request body did not arrive within %s: %v", b.time,
				err), retryAfter)
			switch {
			case errors.Is(err, errBodyMemory):
				refused = apierrors.NewServiceUnavailable(err.Error())
			case errors.Is(err, errBodyShare):
				refused = apierrors.NewTooManyRequests(err.Error(), retryAfter)
			case errors.Is(err, errBodyUnknown):
				refused = apierrors.NewUnauthorized(err.Error())
			}
			responsewriters.ErrorNegotiated(refused, legacyscheme.Codecs, schema.GroupVersion{}, w, r)
			return
		}
		_ = control.SetReadDeadline(time.Time{})
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(body.Bytes()), r.Body), r.Body}
		inner.ServeHTTP(w, r)
	})
}

// read reads the body up to one byte more than the limit on objects. The caller must call release.
func (h *heldBody) read(from io.Reader) error {
	for h.Len() <= kinds.MaxRequestBodyBytes {
		n, err := io.CopyN(&h.Buffer, from, min(bodyChunk, kinds.MaxRequestBodyBytes+1-int64(h.Len())))
		if refused := h.count(n); refused != nil {
			return refused
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
	return nil
}

// identifier returns a function that authenticates a request without changing it.
func identifier(a authenticator.Request) func(*http.Request) (string, bool) {
	return func(r *http.Request) (string, bool) {
		found, ok, err := a.AuthenticateRequest(r.Clone(r.Context())) // it removes the credentials
		if err != nil || !ok {
			return "", false
		}
		return found.User.GetName(), true
	}
}
