package server

import (
	"net"
	"net/http"
	"time"

	"k8s.io/apiserver/pkg/endpoints/responsewriter"
)

// writeLimit is the maximum time that a client may leave the server's output unread. The server closes a connection
// that accepts no byte for this time, and ends a watch that accepts no event.
const writeLimit = 30 * time.Second

// stallLimits are the limits for the writes of responses over HTTP/2. An answer holds a seat of Kubernetes' priority
// and fairness until it is written, so clients that do not read would stop the requests of others.
type stallLimits struct {
	// watch is the maximum time for each write of a watch.
	watch time.Duration
	// answer is the maximum time for all writes of another answer. Each answerRate bytes add a second.
	answer     time.Duration
	answerRate int
}

var defaultStallLimits = stallLimits{watch: writeLimit, answer: 5 * time.Second, answerRate: 128 << 10}

// deadlineListener is a listener that closes the connections of clients that stop reading. Otherwise each would hold
// its requests, goroutines and buffers until the client ends.
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

// endStalled ends a watch or another answer over HTTP/2 that its client does not read, even if the client reads other
// streams of the connection.
func endStalled(inner http.Handler, limits stallLimits) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor == 2 {
			d := &deadlineWriter{ResponseWriter: w, control: http.NewResponseController(w), limit: limits.watch}
			if !r.URL.Query().Has("watch") {
				d.limit, d.rate = limits.answer, limits.answerRate
			}
			w = responsewriter.WrapForHTTP1Or2(d)
		}
		inner.ServeHTTP(w, r)
	})
}

// deadlineWriter is a response with a time limit for its writes. The handler may be idle between writes.
type deadlineWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	// limit is the maximum time for each write. With a rate, it is that for all writes, and each rate bytes add a
	// second.
	limit time.Duration
	rate  int
	// written is the number of bytes so far, and took is the time that their writes took.
	written int
	took    time.Duration
}

var _ responsewriter.UserProvidedDecorator = (*deadlineWriter)(nil)

// Unwrap implements responsewriter.UserProvidedDecorator.
func (s *deadlineWriter) Unwrap() http.ResponseWriter { return s.ResponseWriter }

func (s *deadlineWriter) Write(p []byte) (int, error) {
	defer s.within(len(p))()
	return s.ResponseWriter.Write(p)
}

func (s *deadlineWriter) Flush() {
	defer s.within(0)()
	_ = s.control.Flush() // the handler notices the closed connection from the request's context
}

// within sets the deadline for a write of n bytes, and returns a function that removes it.
func (s *deadlineWriter) within(n int) func() {
	began, limit := time.Now(), s.limit
	if s.rate > 0 {
		s.written += n
		limit += time.Duration(float64(s.written)/float64(s.rate)*float64(time.Second)) - s.took
	}
	_ = s.control.SetWriteDeadline(began.Add(limit))
	return func() {
		s.took += time.Since(began)
		_ = s.control.SetWriteDeadline(time.Time{})
	}
}
