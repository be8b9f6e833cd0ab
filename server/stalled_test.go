package server

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

const (
	// stallLimit is the limit of writes in tests, and stallDeadline what they wait for.
	stallLimit, stallDeadline = 200 * time.Millisecond, 20 * time.Second
)

// testStallLimits permit no time for the bytes of an answer: Go's client receives some megabytes that nobody reads.
var testStallLimits = stallLimits{watch: stallLimit, answer: stallLimit, answerRate: 1 << 40}

// TestStalledWatchEnds has a client that does not read one watch of a connection. That watch ends, and the others go
// on.
func TestStalledWatchEnds(t *testing.T) {
	ended := make(chan error, 1)
	event := make([]byte, 64<<10)
	feed := make(chan struct{})
	handler := func(w http.ResponseWriter, r *http.Request) {
		flush := w.(http.Flusher).Flush
		w.WriteHeader(http.StatusOK)
		flush()
		if r.URL.Path == "/idle" {
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
	s := httptest.NewUnstartedServer(endStalled(http.HandlerFunc(handler), testStallLimits))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	idle, unread := get(t, s, "/idle?watch=true"), get(t, s, "/unread?watch=true")
	if unread.ProtoMajor != 2 {
		t.Fatalf("the test wants HTTP/2, not %s", unread.Proto)
	}
	select {
	case <-ended:
	case <-time.After(stallDeadline):
		t.Fatalf("the watch has not ended within %s", stallDeadline)
	}
	close(feed)
	if got, err := io.ReadAll(idle.Body); err != nil || string(got) != "event" {
		t.Errorf("the watch that was idle for longer than the limit read %q, %v", got, err)
	}
}

// TestStalledAnswerEnds has clients that do not read an answer, or that read a little of it from time to time.
func TestStalledAnswerEnds(t *testing.T) {
	for name, read := range map[string]func(*http.Response){
		"nothing": func(*http.Response) {},
		"a little at a time": func(r *http.Response) {
			for some := make([]byte, 1<<10); ; time.Sleep(stallLimit / 4) {
				if _, err := r.Body.Read(some); err != nil {
					return
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan error, 1)
			s := httptest.NewUnstartedServer(endStalled(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				var err error
				for part := make([]byte, 16<<10); err == nil; {
					_, err = w.Write(part)
				}
				ended <- err
			}), testStallLimits))
			s.EnableHTTP2 = true
			s.StartTLS()
			t.Cleanup(s.Close)
			go read(get(t, s, "/list"))
			select {
			case <-ended:
			case <-time.After(stallDeadline):
				t.Fatalf("the answer has not ended within %s", stallDeadline)
			}
		})
	}
}

// TestSlowAnswerArrives has a handler that pauses for longer than the limit between its writes, and a client that reads all.
func TestSlowAnswerArrives(t *testing.T) {
	s := httptest.NewUnstartedServer(endStalled(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for range 3 {
			_, _ = w.Write(make([]byte, 64<<10))
			time.Sleep(2 * stallLimit)
		}
	}), testStallLimits))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	if got, err := io.ReadAll(get(t, s, "/list").Body); err != nil || len(got) != 3*64<<10 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
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
