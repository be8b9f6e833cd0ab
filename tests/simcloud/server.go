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

// Headers of the API, in addition to the usual ones.
const (
	// HeaderClientToken is the header for a token that makes a create idempotent. Its name is not Idempotency-Key,
	// because Go's HTTP client itself repeats a request with that header: https://pkg.go.dev/net/http#Transport
	HeaderClientToken = "Client-Token"
	// HeaderRequestID is the header for the caller's name of the call, which the log keeps.
	HeaderRequestID = "X-Request-Id"
	// HeaderRegion is the header for the region.
	HeaderRegion = "X-Sim-Region"
	// HeaderModule is the header for the Terraform module of a call, which the log keeps.
	HeaderModule = "X-Sim-Module"
	// HeaderRetryAfterMs is Retry-After in milliseconds, because that header has whole seconds.
	HeaderRetryAfterMs = "Retry-After-Ms"
)

// maxBody is the maximum size of a request's body.
const maxBody = 1 << 20

// Config configures a cloud.
type Config struct {
	// Token is the token that callers must send as "Authorization: Bearer"; empty permits all callers.
	Token string
	// StateFile stores the objects across restarts; empty keeps them only in memory.
	StateFile string
	// LastID is the number before the first ID, so that clouds with different ones give different IDs.
	LastID int64
	// CallLog is the maximum number of calls in the log; 0 means 200,000.
	CallLog int
	// Settings are the initial settings.
	Settings Settings
	// Logger may be nil.
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

// New returns a cloud with the objects of its state file.
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
		token: c.Token, logger: c.Logger, store: newStore(c.LastID), calls: newCallLog(c.CallLog), faults: &faults{},
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

// ServeHTTP serves the API and the control API.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Close ends the calls that hang, and closes the state file. With a state file, later changes fail.
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

// request is a decoded call.
type request struct {
	op, id      string
	kind        *kind // nil for the account and for images
	body        map[string]any
	clientToken string
	name, after string // for a list
	limit       int
}

// reply is the answer of a call. err is set for an error.
type reply struct {
	status int
	body   any
	err    error
	// object is the object of the call. changed is true if the call changed it.
	object string
	effect bool
}

// call serves a call in the order of the package: log, authentication, throttle, delay, fault before, effect, fault
// after, answer.
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
		// It is deferred, because a closed connection is a panic that net/http recovers.
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
		case err == nil && batchOf(r.Context()) == 0: // a batch counts as one call
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

// suffer applies a fault. over is true if the call ends here with the reply.
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

// effect executes a call.
func (s *Server) effect(q request, set *Settings) reply {
	switch {
	case q.op == OpAccount:
		return reply{status: http.StatusOK, body: map[string]any{"account": "sim-account", "regions": []string{"eu-central-1", "eu-west-1", "us-east-1", "us-west-2"}}}
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
		status := http.StatusOK // the object exists: the client token was used before
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

// understand decodes a request. The log also needs the result of an invalid one.
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
		// Read the body to its end first. Only then does the server notice that a caller has disconnected.
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

// kindOfPath returns the name of the kind for the log and the rules.
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

// collectionOf returns the collection in a path of the API. "account" counts as one.
func collectionOf(r *http.Request) string {
	c, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v1/"), "/")
	return c
}

// Settings returns the current settings.
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

// sleep waits until the time is over, the caller disconnects or the cloud stops.
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
	_ = json.NewEncoder(w).Encode(body) // the caller has disconnected, and the log has the answer
}
