package server

import (
	"net"
	"net/http"
	"time"

	"k8s.io/apiserver/pkg/endpoints/responsewriter"

	"github.com/hykube/hykube/server/temporalapi"
)

const (
	// writeLimit is the maximum time that a client may leave the server's output unread. The server closes a connection
	// that accepts no byte for this time, and ends a stream that accepts no piece of maxPiece bytes.
	writeLimit = 30 * time.Second
	maxPiece   = 64 << 10
)

// deadlineListener is a listener that closes the connections of clients that stop reading. Otherwise each would hold its
// requests, goroutines and buffers until the client ends.
type deadlineListener struct {
	net.Listener
	limit time.Duration
}

func (l deadlineListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return deadlineConn{c, l.limit}, nil
}

type deadlineConn struct {
	net.Conn
	limit time.Duration
}

// Write implements net.Conn. TLS writes records of at most 16 KiB, so even a slow client has enough time for each.
func (c deadlineConn) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(c.limit)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// endStalled ends a watch, or a call of Temporal's service, over HTTP/2 that its client does not read, even if the
// client reads other streams of the connection.
func endStalled(inner http.Handler, limit time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor == 2 && (temporalapi.Serves(r) || r.URL.Query().Has("watch")) {
			w = responsewriter.WrapForHTTP1Or2(&deadlineWriter{ResponseWriter: w, control: http.NewResponseController(w), limit: limit})
		}
		inner.ServeHTTP(w, r)
	})
}

// deadlineWriter is a response with a time limit for each piece of it. A watch, or a poll, may be idle between writes.
type deadlineWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	limit   time.Duration
}

var _ responsewriter.UserProvidedDecorator = (*deadlineWriter)(nil)

// Unwrap implements responsewriter.UserProvidedDecorator.
func (s *deadlineWriter) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// Write implements http.ResponseWriter. A slow client has the time for each piece: an answer of Temporal has up to
// 4 MiB.
func (s *deadlineWriter) Write(p []byte) (written int, err error) {
	for first := true; first || err == nil && len(p) > 0; first = false {
		var n int
		n, err = s.writePiece(p[:min(len(p), maxPiece)])
		written, p = written+n, p[n:]
	}
	return written, err
}

func (s *deadlineWriter) writePiece(p []byte) (int, error) {
	defer s.within()()
	return s.ResponseWriter.Write(p)
}

func (s *deadlineWriter) Flush() {
	defer s.within()()
	_ = s.control.Flush() // the handler notices the closed connection from the request's context
}

// within sets the write deadline and returns a function that removes it.
func (s *deadlineWriter) within() func() {
	_ = s.control.SetWriteDeadline(time.Now().Add(s.limit))
	return func() { _ = s.control.SetWriteDeadline(time.Time{}) }
}
