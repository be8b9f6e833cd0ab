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

func TestBodiesHaveALimitTogether(t *testing.T) {
	b := &bodies{time: stallDeadline, memory: 3 * bodyChunk}
	s, called := bodiesServer(t, b)
	post := func(size int) int {
		r, err := s.Client().Post(s.URL, "text/plain", bytes.NewReader(make([]byte, size)))
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Body.Close()
		return r.StatusCode
	}
	if code := post(2 * bodyChunk); code != http.StatusOK {
		t.Errorf("within the limit: %d", code)
	}
	if code := post(4 * bodyChunk); code != http.StatusServiceUnavailable {
		t.Errorf("beyond the limit: %d", code)
	}
	if code := post(2 * bodyChunk); code != http.StatusOK || called.Load() != 2 {
		t.Errorf("after it: %d, %d calls", code, called.Load())
	}
}
