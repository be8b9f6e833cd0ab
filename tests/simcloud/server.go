package simcloud

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Headers of the API beside the usual ones.
const (
	// HeaderClientToken carries a token that makes a create safe to send twice. It is not called Idempotency-Key, because
	// Go's HTTP client sends a request with that header again by itself: https://pkg.go.dev/net/http#Transport
	HeaderClientToken = "Client-Token"
	// HeaderRequestID carries the caller's name for the call; the log keeps it.
	HeaderRequestID = "X-Request-Id"
	// HeaderRegion carries the region.
	HeaderRegion = "X-Sim-Region"
	// HeaderModule carries the name of the Terraform module that a call is made for; the log keeps it.
	HeaderModule = "X-Sim-Module"
	// HeaderRetryAfterMs is Retry-After in milliseconds, since that knows whole seconds only.
	HeaderRetryAfterMs = "Retry-After-Ms"
)

// maxBody is the largest request body.
const maxBody = 1 << 20

// Config is what a cloud is made with.
type Config struct {
	// Token that callers must bring as "Authorization: Bearer"; empty lets everybody in.
	Token string
	// StateFile keeps what exists over restarts; empty keeps it in memory only.
	StateFile string
	// CallLog is how many calls the log holds; 0 means 200,000.
	CallLog int
	// Settings to begin with.
	Settings Settings
	// Logger; nil logs nothing.
	Logger *slog.Logger
}

// Server is the cloud.
type Server struct {
	token  string
	logger *slog.Logger
	store  *store
	calls  *callLog
	faults *faults
	mux    *http.ServeMux

	mu       sync.Mutex
	settings Settings
	initial  Settings
	bucket   bucket

	batches atomic.Int64

	done     chan struct{}
	stopOnce sync.Once
}

// New makes a cloud, with what its state file holds.
func New(c Config) (*Server, error) {
	if err := c.Settings.validate(); err != nil {
		return nil, fmt.Errorf("check settings: %w", err)
	}
	if c.CallLog <= 0 {
		c.CallLog = 200_000
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{
		token: c.Token, logger: c.Logger, store: newStore(), calls: newCallLog(c.CallLog), faults: &faults{},
		settings: c.Settings.own(), initial: c.Settings, done: make(chan struct{}), mux: http.NewServeMux(),
	}
	if c.StateFile != "" {
		if err := s.store.open(c.StateFile); err != nil {
			return nil, err
		}
	}
	s.routes()
	return s, nil
}

// ServeHTTP answers the API and the control API.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Close lets go of the calls that hang, and closes the state file. Later changes fail when there is one.
func (s *Server) Close() error {
	var err error
	s.stopOnce.Do(func() {
		close(s.done)
		s.store.mu.Lock()
		defer s.store.mu.Unlock()
		err = s.store.journal.close()
	})
	return err
}

func (s *Server) routes() {
	s.mux.Handle("GET /v1/account", s.call(OpAccount))
	s.mux.HandleFunc("POST /v1/batch", s.batch)
	s.mux.Handle("POST /v1/{collection}", s.call(OpCreate))
	s.mux.Handle("GET /v1/{collection}", s.call(OpList))
	s.mux.Handle("GET /v1/{collection}/{id}", s.call(OpRead))
	s.mux.Handle("PUT /v1/{collection}/{id}", s.call(OpUpdate))
	s.mux.Handle("DELETE /v1/{collection}/{id}", s.call(OpDelete))
	s.mux.Handle("POST /v1/disks/{id}/attach", s.call(OpAttach))
	s.mux.Handle("POST /v1/disks/{id}/detach", s.call(OpDetach))
	s.mux.Handle("POST /v1/instances/{id}/reboot", s.call(OpReboot))
	s.mux.Handle("POST /v1/sessions/{id}/renew", s.call(OpRenew))
	s.control()
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeError(w, &Error{Status: http.StatusNotFound, Code: "UnknownPath", Message: fmt.Sprintf("nothing is served at %s %s", r.Method, r.URL.Path)})
	})
}

// request is a call that was read and understood.
type request struct {
	op, id      string
	kind        *kind // nil for the account and for images
	body        map[string]any
	clientToken string
	name, after string // of a list
	limit       int
}

// reply is what a call is answered with; err stands for an answer that is an error.
type reply struct {
	status int
	body   any
	err    error
	// object that the call was about, and whether it was changed.
	object string
	effect bool
}

// call is the way of every call: log, authenticate, throttle, delay, fault before, effect, fault after, answer.
func (s *Server) call(op string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req, err := s.understand(op, r)
		entry := Call{
			Method: r.Method, Path: r.URL.Path, Op: op, Kind: kindOfPath(r), Object: req.id, Name: text(req.body["name"]),
			RequestID: r.Header.Get(HeaderRequestID), ClientToken: req.clientToken, Region: r.Header.Get(HeaderRegion),
			Module: r.Header.Get(HeaderModule), Batch: batchOf(r.Context()),
		}
		if entry.Name == "" {
			if entry.Name = req.name; entry.Name == "" {
				entry.Name = s.store.nameOf(req.id)
			}
		}
		logged := s.calls.begin(entry)
		// In a defer, because closing the connection is a panic that net/http catches.
		defer func() {
			s.calls.end(logged, entry)
			s.logger.Debug("call", "id", logged.ID, "op", entry.Op, "kind", entry.Kind, "name", entry.Name, "object", entry.Object, "status", entry.Status)
		}()
		answer := func(rep reply) {
			if rep.object != "" {
				entry.Object = rep.object
			}
			entry.Effect = entry.Effect || rep.effect
			if rep.err != nil {
				e := asError(rep.err)
				entry.Status, entry.Error = e.Status, e.Error()
				writeError(w, e)
				return
			}
			entry.Status = rep.status
			writeJSON(w, rep.status, rep.body)
		}

		switch {
		case !s.authorized(r):
			err = &Error{Status: http.StatusUnauthorized, Code: "Unauthorized", Message: "the token is missing or wrong"}
		case err == nil && !inBatch(r.Context()): // a batch counts as one call
			err = s.throttle()
		}
		if err != nil {
			answer(reply{err: err})
			return
		}
		set := s.Settings()
		rule := set.latency(entry.Kind, op)
		s.sleep(r.Context(), time.Duration(rule.Delay)+jitter(rule.Jitter))

		fault, removed := s.faults.strike(entry.Kind, op, entry.Name, req.id)
		if fault != nil {
			entry.Fault = fault.ID
		}
		if fault != nil && fault.When != After {
			if rep, over := s.suffer(r.Context(), fault, removed, &entry); over {
				answer(rep)
				return
			}
		}
		rep := s.effect(req, &set)
		entry.Effect = rep.effect
		if rep.object != "" {
			entry.Object = rep.object
		}
		if fault != nil && fault.Action == ActionFail && op == OpCreate && rep.effect && req.kind.status {
			view, err := s.store.drift(req.kind, rep.object, map[string]any{"status": "failed"})
			if rep.err = err; err == nil {
				rep.body = view
			}
		}
		if fault != nil && fault.When == After {
			if lost, over := s.suffer(r.Context(), fault, removed, &entry); over {
				rep = lost
			}
		}
		answer(rep)
	})
}

// suffer does what a fault says. over is true when the call ends here with the reply.
func (s *Server) suffer(ctx context.Context, f *Fault, removed <-chan struct{}, entry *Call) (rep reply, over bool) {
	switch f.Action {
	case "", ActionStatus:
		return reply{err: f.answer()}, true
	case ActionClose:
		entry.Error = "connection closed by fault"
		panic(http.ErrAbortHandler)
	case ActionDelay:
		s.sleep(ctx, time.Duration(f.Delay))
	case ActionHang:
		var timeout <-chan time.Time
		if f.Delay > 0 {
			t := time.NewTimer(time.Duration(f.Delay))
			defer t.Stop()
			timeout = t.C
		}
		select {
		case <-ctx.Done():
		case <-removed:
		case <-timeout:
		case <-s.done:
		}
		entry.Error = "hung by fault"
		panic(http.ErrAbortHandler)
	}
	return reply{}, false
}

// effect does what was asked for.
func (s *Server) effect(q request, set *Settings) reply {
	switch {
	case q.op == OpAccount:
		return reply{status: http.StatusOK, body: map[string]any{"account": "sim-account", "regions": Regions()}}
	case q.kind == nil && q.op == OpList:
		return reply{status: http.StatusOK, body: map[string]any{"items": imagesOf(q.name)}}
	case q.kind == nil:
		return reply{err: &Error{Status: http.StatusMethodNotAllowed, Code: "ReadOnly", Message: "images can only be listed"}}
	}
	switch q.op {
	case OpCreate:
		view, made, err := s.store.create(q.kind, q.body, q.clientToken, set)
		if err != nil {
			return reply{err: err}
		}
		status := http.StatusOK // it was there: the client token was used before
		if made {
			status = http.StatusCreated
		}
		return reply{status: status, body: view, object: text(view["id"]), effect: made}
	case OpRead:
		view, err := s.store.read(q.kind, q.id, false)
		return reply{status: http.StatusOK, body: view, err: err}
	case OpList:
		items, more := s.store.list(q.kind, q.name, q.after, q.limit, false)
		return reply{status: http.StatusOK, body: map[string]any{"items": items, "next": more}}
	case OpUpdate:
		view, err := s.store.update(q.kind, q.id, q.body, set)
		return reply{status: http.StatusOK, body: view, err: err, effect: err == nil}
	case OpDelete:
		err := s.store.remove(q.kind, q.id, false, set)
		return reply{status: http.StatusNoContent, err: err, effect: err == nil}
	case OpReboot:
		view, err := s.store.reboot(q.kind, q.id, set)
		return reply{status: http.StatusOK, body: view, err: err, effect: err == nil}
	case OpRenew:
		view, err := s.store.renew(q.kind, q.id)
		return reply{status: http.StatusOK, body: view, err: err, effect: err == nil}
	default:
		var instance any
		if q.op == OpAttach {
			if instance = q.body["instance_id"]; text(instance) == "" {
				return reply{err: invalid("instance_id", "is required")}
			}
		}
		view, err := s.store.attach(q.kind, q.id, instance, set)
		return reply{status: http.StatusOK, body: view, err: err, effect: err == nil}
	}
}

// understand reads a request; it is always worth logging, also with an error.
func (s *Server) understand(op string, r *http.Request) (request, error) {
	q := request{op: op, id: r.PathValue("id"), clientToken: r.Header.Get(HeaderClientToken), limit: 500}
	if op == OpAccount {
		return q, nil
	}
	collection := collectionOf(r)
	for i := range kinds() {
		if kinds()[i].collection == collection {
			q.kind = &kinds()[i]
		}
	}
	if q.kind == nil && collection != "images" {
		return q, &Error{Status: http.StatusNotFound, Code: "UnknownCollection", Message: fmt.Sprintf("there is no collection %q", collection)}
	}
	switch op {
	case OpList:
		q.name, q.after = r.URL.Query().Get("name"), r.URL.Query().Get("after")
		if l := r.URL.Query().Get("limit"); l != "" {
			n, err := strconv.Atoi(l)
			if err != nil || n < 1 || n > 1000 {
				return q, invalid("limit", "is a number from 1 to 1000")
			}
			q.limit = n
		}
	case OpCreate, OpUpdate, OpAttach:
		// Read to the end before anything else: only then does the server notice that a caller has gone away.
		err := json.NewDecoder(http.MaxBytesReader(nil, r.Body, maxBody)).Decode(&q.body)
		if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return q, &Error{Status: http.StatusRequestEntityTooLarge, Code: "TooLarge", Message: fmt.Sprintf("a body has at most %d bytes", tooLarge.Limit)}
		}
		if err != nil {
			return q, &Error{Status: http.StatusBadRequest, Code: "MalformedBody", Message: "the body is no JSON object: " + err.Error()}
		}
	}
	return q, nil
}

// kindOfPath is the kind as the log and the rules name it.
func kindOfPath(r *http.Request) string {
	switch c := collectionOf(r); c {
	case "images":
		return "image"
	default:
		if k := kindNamed(c); k != nil {
			return k.name
		}
		return c
	}
}

// collectionOf is the collection that a path of the API is about; "account" counts as one.
func collectionOf(r *http.Request) string {
	c, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v1/"), "/")
	return c
}

// Settings are how the cloud behaves now.
func (s *Server) Settings() Settings {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.settings
}

// Change replaces the settings.
func (s *Server) Change(set Settings) error {
	if err := set.validate(); err != nil {
		return fmt.Errorf("check settings: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settings, s.bucket = set.own(), bucket{}
	return nil
}

func (s *Server) authorized(r *http.Request) bool {
	want := "Bearer " + s.token
	return s.token == "" || subtle.ConstantTimeCompare([]byte(want), []byte(r.Header.Get("Authorization"))) == 1
}

func (s *Server) throttle() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	wait, ok := s.bucket.take(s.settings.Throttle, time.Now())
	if ok {
		return nil
	}
	return &Error{Status: http.StatusTooManyRequests, Code: "Throttled", Message: "too many calls; come back later", RetryAfter: wait}
}

// sleep waits, unless the caller goes away or the cloud stops.
func (s *Server) sleep(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	case <-s.done:
	}
}

func jitter(j Duration) time.Duration {
	if j <= 0 {
		return 0
	}
	return rand.N(time.Duration(j))
}

func imagesOf(name string) []Image {
	out := []Image{}
	for _, i := range Images() {
		if name == "" || name == i.Name {
			out = append(out, i)
		}
	}
	return out
}

func asError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Status: http.StatusInternalServerError, Code: "Internal", Message: err.Error()}
}

func writeError(w http.ResponseWriter, e *Error) {
	if e.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(e.RetryAfter.Seconds()))))
		w.Header().Set(HeaderRetryAfterMs, strconv.FormatInt(max(1, e.RetryAfter.Milliseconds()), 10))
	}
	writeJSON(w, e.Status, map[string]any{"error": e})
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	if body == nil || status == http.StatusNoContent {
		w.WriteHeader(status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the caller went away, and the log says what was answered
}
