package temporalapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/responsewriter"
)

// maxRefusal is the maximum size of the body of a refusal that becomes a message of gRPC.
const maxRefusal = 16 << 10

// WithStatus returns a handler that answers as gRPC does if inner refuses a request for the service. The handlers of
// the API server know HTTP only, and a client of gRPC would not show their messages.
func WithStatus(inner http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !Serves(r) {
			inner.ServeHTTP(w, r)
			return
		}
		refusal := &refusal{ResponseWriter: w}
		inner.ServeHTTP(responsewriter.WrapForHTTP1Or2(refusal), r)
		refusal.finish()
	})
}

// refusal buffers a response unless it is one of gRPC.
type refusal struct {
	http.ResponseWriter
	code int // 0 while nothing is written, or after an answer of gRPC has begun
	body bytes.Buffer
	grpc bool
}

var _ responsewriter.UserProvidedDecorator = (*refusal)(nil)

// Unwrap implements responsewriter.UserProvidedDecorator.
func (r *refusal) Unwrap() http.ResponseWriter { return r.ResponseWriter }

func (r *refusal) WriteHeader(code int) {
	if r.grpc || strings.HasPrefix(r.Header().Get("Content-Type"), "application/grpc") {
		r.grpc = true
		r.ResponseWriter.WriteHeader(code)
		return
	}
	if r.code == 0 {
		r.code = code
	}
}

func (r *refusal) Write(p []byte) (int, error) {
	if !r.grpc && r.code == 0 {
		r.WriteHeader(http.StatusOK)
	}
	if r.grpc {
		return r.ResponseWriter.Write(p)
	}
	r.body.Write(p[:min(len(p), max(0, maxRefusal-r.body.Len()))])
	return len(p), nil
}

// Flush implements http.Flusher.
func (r *refusal) Flush() {
	if r.grpc {
		_ = http.NewResponseController(r.ResponseWriter).Flush() // the handler notices the closed connection
	}
}

// finish answers with the status of a refusal, without a message of the method.
func (r *refusal) finish() {
	if r.grpc || r.code == 0 {
		return
	}
	header := r.Header()
	for _, name := range []string{"Content-Length", "Content-Encoding", "Trailer"} {
		header.Del(name)
	}
	header.Set("Content-Type", "application/grpc")
	header.Set("Grpc-Status", strconv.Itoa(int(codeOf(r.code))))
	header.Set("Grpc-Message", escape(r.message()))
	r.ResponseWriter.WriteHeader(http.StatusOK)
}

func (r *refusal) message() string {
	var s metav1.Status
	if err := json.Unmarshal(r.body.Bytes(), &s); err == nil && s.Message != "" {
		return s.Message
	}
	if text := strings.TrimSpace(r.body.String()); text != "" {
		return text
	}
	return http.StatusText(r.code)
}

// codeOf returns the code of gRPC for a status of HTTP. Clients of Temporal retry Unavailable and ResourceExhausted.
func codeOf(status int) codes.Code {
	switch status {
	case http.StatusUnauthorized:
		return codes.Unauthenticated
	case http.StatusForbidden:
		return codes.PermissionDenied
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return codes.Unimplemented
	case http.StatusTooManyRequests:
		return codes.ResourceExhausted
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType:
		return codes.InvalidArgument
	case http.StatusGatewayTimeout, http.StatusRequestTimeout:
		return codes.DeadlineExceeded
	}
	return codes.Unavailable
}

// escape encodes a message for the gRPC header Grpc-Message.
func escape(message string) string {
	var out strings.Builder
	for i := range len(message) {
		if c := message[i]; c < ' ' || c > '~' || c == '%' {
			fmt.Fprintf(&out, "%%%02X", c)
		} else {
			out.WriteByte(c)
		}
	}
	return out.String()
}
