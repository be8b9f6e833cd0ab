package server

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path"
	"testing"
	"time"

	"github.com/hykube/hykube/server/temporalapi"
)

const (
	// stallLimit is the limit of writes in tests, and stallDeadline what they wait for.
	stallLimit, stallDeadline = 200 * time.Millisecond, 20 * time.Second
)

// TestStalledStreamEnds has a client that does not read one watch of a connection, or one call of Temporal's service. That
// one ends, and the others go on.
func TestStalledStreamEnds(t *testing.T) {
	t.Run("a watch", func(t *testing.T) { testStalled(t, "/idle?watch=true", "/unread?watch=true") })
	t.Run("a call", func(t *testing.T) { testStalled(t, temporalapi.PathPrefix+"idle", temporalapi.PathPrefix+"unread") })
}

func testStalled(t *testing.T, idlePath, unreadPath string) {
	ended := make(chan error, 1)
	event := make([]byte, 64<<10)
	feed := make(chan struct{})
	handler := func(w http.ResponseWriter, r *http.Request) {
		flush := w.(http.Flusher).Flush
		w.WriteHeader(http.StatusOK)
		flush()
		if path.Base(r.URL.Path) == "idle" {
			<-feed
			_, _ = w.Write([]byte("event"))
			return
		}
		for {
			if _, err := w.Write(event); err != nil {
				ended <- err
				return
			}
			flush()
		}
	}
	s := httptest.NewUnstartedServer(endStalled(http.HandlerFunc(handler), stallLimit))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	idle, unread := get(t, s, idlePath), get(t, s, unreadPath)
	if unread.ProtoMajor != 2 {
		t.Fatalf("the test wants HTTP/2, not %s", unread.Proto)
	}
	select {
	case <-ended:
	case <-time.After(stallDeadline):
		t.Fatalf("the stream has not ended within %s", stallDeadline)
	}
	close(feed)
	if got, err := io.ReadAll(idle.Body); err != nil || string(got) != "event" {
		t.Errorf("the stream that was idle for longer than the limit read %q, %v", got, err)
	}
}

// TestPiecesHaveTheTime counts the pieces of a large answer. Each has the whole time limit, so a slow client gets the answer.
func TestPiecesHaveTheTime(t *testing.T) {
	w := &piecesWriter{ResponseRecorder: httptest.NewRecorder()}
	answer := bytes.Repeat([]byte("0123456789"), 20_000)
	s := &deadlineWriter{ResponseWriter: w, control: http.NewResponseController(w), limit: stallLimit}
	n, err := s.Write(answer)
	if err != nil || n != len(answer) || !bytes.Equal(w.Body.Bytes(), answer) {
		t.Fatalf("%d of %d bytes are written, %v", n, len(answer), err)
	}
	if want := 2 * 4; len(w.deadlines) != want { // each deadline is set and removed
		t.Errorf("%d deadlines for 200,000 bytes, want %d", len(w.deadlines), want)
	}
	if _, err := s.Write(nil); err != nil || w.Code != http.StatusOK {
		t.Errorf("an empty answer: %v, HTTP %d", err, w.Code)
	}
}

// piecesWriter records the deadlines of a response.
type piecesWriter struct {
	*httptest.ResponseRecorder
	deadlines []time.Time
}

func (w *piecesWriter) SetWriteDeadline(at time.Time) error {
	w.deadlines = append(w.deadlines, at)
	return nil
}

func get(t *testing.T, s *httptest.Server, path string) *http.Response {
	t.Helper()
	r, err := s.Client().Get(s.URL + path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Body.Close() })
	return r
}

// TestStalledConnectionEnds has a client that reads nothing from its connection.
func TestStalledConnectionEnds(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	served, err := deadlineListener{l, stallLimit}.Accept()
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		for data := make([]byte, 16<<10); err == nil; {
			_, err = served.Write(data)
		}
		ended <- err
	}()
	select {
	case err := <-ended:
		if timeout, ok := err.(net.Error); !ok || !timeout.Timeout() {
			t.Errorf("writing ended with %v, want a timeout", err)
		}
	case <-time.After(stallDeadline):
		t.Fatalf("writing has not ended within %s", stallDeadline)
	}
}
