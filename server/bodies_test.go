package server

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hykube/hykube/server/kinds"
)

// bodiesServer counts the requests whose handler was called, and sends their bodies back.
func bodiesServer(t *testing.T, b *bodies) (s *httptest.Server, called *atomic.Int32) {
	t.Helper()
	called = new(atomic.Int32)
	b.identify = func(r *http.Request) (string, bool) { return r.Header.Get("User"), r.Header.Get("User") != "" }
	s = httptest.NewUnstartedServer(b.wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		called.Add(1)
		_, _ = io.Copy(w, r.Body)
	})))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	return s, called
}

func TestBodiesArriveUnchanged(t *testing.T) {
	b := &bodies{time: stallDeadline, memory: bodyMemory}
	s, _ := bodiesServer(t, b)
	for _, size := range []int{0, 1, bodyChunk, bodyChunk + 1, kinds.MaxRequestBodyBytes, kinds.MaxRequestBodyBytes + 1, kinds.MaxRequestBodyBytes + 100_000} {
		sent := bytes.Repeat([]byte("x"), size)
		r, err := s.Client().Post(s.URL, "text/plain", bytes.NewReader(sent))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r.Body)
		_ = r.Body.Close()
		if err != nil || !bytes.Equal(got, sent) {
			t.Errorf("%d bytes: %d arrived, %v", size, len(got), err)
		}
	}
	if held := b.held.Load(); held != 0 {
		t.Errorf("%d bytes are still counted", held)
	}
}

// TestHalfABodyReachesNoHandler sends half a body. The server ends the request without calling its handler, which would
// hold a seat.
func TestHalfABodyReachesNoHandler(t *testing.T) {
	b := &bodies{time: stallLimit, memory: bodyMemory}
	s, called := bodiesServer(t, b)
	conn, err := tls.Dial("tcp", s.Listener.Addr().String(), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nhalf")
	_ = conn.SetReadDeadline(time.Now().Add(stallDeadline))
	if answer, err := io.ReadAll(conn); err != nil || !bytes.Contains(answer, []byte("did not arrive within")) {
		t.Errorf("answer %q, %v", answer, err)
	}
	body, unfinished := io.Pipe()
	defer unfinished.Close()
	go func() { _, _ = unfinished.Write([]byte("half")) }()
	r, err := s.Client().Post(s.URL, "text/plain", body)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusGatewayTimeout || r.ProtoMajor != 2 {
		t.Errorf("%s %s, want a timeout over HTTP/2", r.Proto, r.Status)
	}
	if n := called.Load(); n != 0 {
		t.Errorf("the handler was called %d times", n)
	}
}

// TestBodiesHaveALimitTogether sends bodies of several users, of which none exceeds its share.
func TestBodiesHaveALimitTogether(t *testing.T) {
	const users = 2 * bodyShare
	b := &bodies{time: stallDeadline, memory: users * bodyChunk}
	s, _ := bodiesServer(t, b)
	for user := range users {
		body, unfinished := io.Pipe()
		t.Cleanup(func() { _ = unfinished.Close() })
		go post(t, s, fmt.Sprint(user), body)
		_, _ = unfinished.Write(make([]byte, bodyChunk))
	}
	for end := time.Now().Add(stallDeadline); b.held.Load() < b.memory && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	if code := post(t, s, "alice", bytes.NewReader(make([]byte, bodyChunk))); code != http.StatusServiceUnavailable {
		t.Errorf("beyond the limit: %d", code)
	}
}

// post sends a body as a user, and returns the status of the answer; 0 without one.
func post(t *testing.T, s *httptest.Server, user string, body io.Reader) int {
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, body)
	if err != nil {
		return 0
	}
	r.Header.Set("User", user)
	own := s.Client().Transport.(*http.Transport).Clone() // a refused body ends its connection
	defer own.CloseIdleConnections()
	answer, err := (&http.Client{Transport: own}).Do(r)
	if err != nil {
		return 0
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}

// TestBodiesHaveAShareForEach sends bodies that never end, without a user and as one user. They do not stop the bodies of others.
func TestBodiesHaveAShareForEach(t *testing.T) {
	const pieces = 16
	b := &bodies{time: stallDeadline, memory: pieces * bodyChunk}
	s, _ := bodiesServer(t, b)
	for _, user := range []string{"", "mallory"} {
		codes := make(chan int, pieces)
		for range pieces {
			body, unfinished := io.Pipe()
			t.Cleanup(func() { _ = unfinished.Close() })
			go func() { _, _ = unfinished.Write(make([]byte, bodyChunk)) }()
			go func() { codes <- post(t, s, user, body) }()
		}
		want := map[string]int{"": http.StatusUnauthorized, "mallory": http.StatusTooManyRequests}[user]
		for range pieces - pieces/bodyShare { // the others hang
			if code := <-codes; code != want {
				t.Errorf("a body of the user %q: %d, want %d", user, code, want)
			}
		}
	}
	if code := post(t, s, "alice", bytes.NewReader(make([]byte, bodyChunk))); code != http.StatusOK {
		t.Errorf("another user: %d", code)
	}
}
