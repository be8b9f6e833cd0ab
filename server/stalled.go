package server

import (
	"net"
	"net/http"
	"time"

	"k8s.io/apiserver/pkg/endpoints/responsewriter"
)

// writeLimit bounds how long a client may leave unread what the server writes to it. A connection ends when it takes no byte for so
// long, and a watch when it does not take one event.
const writeLimit = 30 * time.Second

// impatient is a listener whose connections end when a client stops reading. Without it each would hold its requests, their goroutines
// and their buffers for as long as the client exists.
type impatient struct {
	net.Listener
	limit time.Duration
}

// Accept implements net.Listener.
func (l impatient) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return impatientConn{c, l.limit}, nil
}

type impatientConn struct {
	net.Conn
	limit time.Duration
}

// Write implements net.Conn. TLS writes records of at most 16 KiB, so a slow client has enough time for each.
func (c impatientConn) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(c.limit)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// endStalled ends a watch over HTTP/2 whose client does not read it, while the client may read the others of its connection.
func endStalled(inner http.Handler, limit time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor == 2 && r.URL.Query().Has("watch") {
			w = responsewriter.WrapForHTTP1Or2(&stalling{ResponseWriter: w, control: http.NewResponseController(w), limit: limit})
		}
		inner.ServeHTTP(w, r)
	})
}

// stalling is a response whose writes take no longer than the limit. Between them there is no limit: a watch may be idle.
type stalling struct {
	http.ResponseWriter
	control *http.ResponseController
	limit   time.Duration
}

var _ responsewriter.UserProvidedDecorator = (*stalling)(nil)

// Unwrap implements responsewriter.UserProvidedDecorator.
func (s *stalling) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// Write implements http.ResponseWriter.
func (s *stalling) Write(p []byte) (int, error) {
	defer s.within()()
	return s.ResponseWriter.Write(p)
}

// Flush implements http.Flusher.
func (s *stalling) Flush() {
	defer s.within()()
	_ = s.control.Flush() // the handler learns from the request's context that the client is gone
}

// within sets the limit, and returns what lifts it.
func (s *stalling) within() func() {
	_ = s.control.SetWriteDeadline(time.Now().Add(s.limit))
	return func() { _ = s.control.SetWriteDeadline(time.Time{}) }
}
