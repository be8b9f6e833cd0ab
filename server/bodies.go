package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
)

// errBodyMemory is the error if the bodies of all requests need too much memory.
var errBodyMemory = errors.New("the server holds too many request bodies; try again later")

// bodies reads the body of each request before Kubernetes' priority and fairness counts the request. Otherwise a client
// that sends half a body would occupy a seat, and a few such clients would stop all writes of others.
type bodies struct {
	time   time.Duration
	memory int64
	held   atomic.Int64
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
		body, err := b.read(r.Body)
		defer b.held.Add(-int64(body.Len()))
		if err != nil {
			w.Header().Set("Connection", "close")
			refused := apierrors.NewTimeoutError(fmt.Sprintf("The request body did not arrive within %s: %v", b.time, err), retryAfter)
			if errors.Is(err, errBodyMemory) {
				refused = apierrors.NewServiceUnavailable(err.Error())
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

// read returns the body up to one byte more than the limit on objects. The caller must subtract its length from held.
func (b *bodies) read(from io.Reader) (body *bytes.Buffer, err error) {
	body = new(bytes.Buffer)
	for body.Len() <= kinds.MaxRequestBodyBytes {
		n, err := io.CopyN(body, from, min(bodyChunk, kinds.MaxRequestBodyBytes+1-int64(body.Len())))
		if b.held.Add(n) > b.memory {
			return body, errBodyMemory
		}
		switch {
		case errors.Is(err, io.EOF):
			return body, nil
		case err != nil:
			return body, err
		}
	}
	return body, nil
}
