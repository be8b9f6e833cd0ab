package simcloud

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
)

// maxBatch is the maximum number of calls in a batch, and maxBatchBody the maximum size of its body.
const (
	maxBatch     = 1000
	maxBatchBody = 16 << 20
)

// BatchRequest is the body of POST /v1/batch: calls that the cloud executes together. The throttle counts them as one
// call.
type BatchRequest struct {
	Calls []BatchCall `json:"calls"`
}

// BatchCall is one call of a batch.
type BatchCall struct {
	Method string `json:"method"`
	// Path is the path with its query, such as /v1/networks.
	Path   string            `json:"path"`
	Header map[string]string `json:"header,omitempty"`
	Body   json.RawMessage   `json:"body,omitempty"`
}

// BatchResponse is the response of POST /v1/batch: an answer for each call, in their order, after the last call has
// ended.
type BatchResponse struct {
	Answers []BatchAnswer `json:"answers"`
}

// BatchAnswer is the answer of one call. The status is 0 if a fault closed the connection of the call.
type BatchAnswer struct {
	Status int               `json:"status"`
	Header map[string]string `json:"header,omitempty"`
	Body   json.RawMessage   `json:"body,omitempty"`
}

type batchKey struct{}

// batchOf returns the number of the batch of a call, or 0.
func batchOf(ctx context.Context) int64 {
	n, _ := ctx.Value(batchKey{}).(int64)
	return n
}

// batch serves a batch.
func (s *Server) batch(w http.ResponseWriter, r *http.Request) {
	if !s.authorized(r) {
		writeError(w, &Error{Status: http.StatusUnauthorized, Code: "Unauthorized", Message: "the token is missing or wrong"})
		return
	}
	var req BatchRequest
	if err := json.NewDecoder(http.MaxBytesReader(nil, r.Body, maxBatchBody)).Decode(&req); err != nil {
		writeError(w, &Error{Status: http.StatusBadRequest, Code: "MalformedBody", Message: "the body is no batch: " + err.Error()})
		return
	}
	if len(req.Calls) == 0 || len(req.Calls) > maxBatch {
		writeError(w, invalid("calls", fmt.Sprintf("has 1 to %d calls", maxBatch)))
		return
	}
	if err := s.throttle(); err != nil {
		writeError(w, asError(err))
		return
	}
	ctx := context.WithValue(r.Context(), batchKey{}, s.batches.Add(1))
	answers := make([]BatchAnswer, len(req.Calls))
	var all sync.WaitGroup
	for i, call := range req.Calls {
		all.Go(func() { answers[i] = s.one(ctx, r, call) })
	}
	all.Wait()
	writeJSON(w, http.StatusOK, BatchResponse{Answers: answers})
}

// one executes a call of a batch, with the authorization of the batch.
func (s *Server) one(ctx context.Context, r *http.Request, call BatchCall) (answer BatchAnswer) {
	defer func() {
		if lost := recover(); lost != nil {
			if err, ok := lost.(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
				panic(lost)
			}
			answer = BatchAnswer{}
		}
	}()
	one, err := http.NewRequestWithContext(ctx, call.Method, call.Path, bytes.NewReader(call.Body))
	if err != nil {
		return BatchAnswer{Status: http.StatusBadRequest, Body: json.RawMessage(`{"error":{"code":"MalformedCall","message":"a call of the batch has no valid path"}}`)}
	}
	for name, value := range call.Header {
		one.Header.Set(name, value)
	}
	one.Header.Set("Authorization", r.Header.Get("Authorization"))
	recorded := &recorder{header: http.Header{}}
	s.mux.ServeHTTP(recorded, one)
	answer = BatchAnswer{Status: recorded.status, Header: map[string]string{}, Body: bytes.TrimSpace(recorded.body.Bytes())}
	for name := range recorded.header {
		answer.Header[name] = recorded.header.Get(name)
	}
	return answer
}

// recorder records an answer.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header { return r.header }

func (r *recorder) WriteHeader(status int) { r.status = status }

func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.body.Write(b)
}
