package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/hykube/hykube/server"
)

// TestRequestsWaitUntilAllKindsAreServed asks a server for everything while the kinds of its providers are not served
// yet, and again while it stops: clients take 404 to mean that a kind is removed.
func TestRequestsWaitUntilAllKindsAreServed(t *testing.T) {
	dir := t.TempDir()
	for round := range 2 {
		var ready, served atomic.Bool
		s, err := launch(t.Context(), server.Config{DataDir: dir, Wire: func(ctx context.Context, h *server.Components) (server.Wiring, error) {
			return server.Wiring{
				Ready: func() error {
					if !ready.Load() || !served.Load() {
						return errors.New("not yet")
					}
					return nil
				},
				Run: func(ctx context.Context) error {
					// The server's own clients get through, and a kind comes late.
					if err := asksItself(ctx, h.Loopback); err != nil {
						return err
					}
					if err := h.Kinds.Set(sim()); err != nil {
						return err
					}
					served.Store(true)
					<-ctx.Done()
					return nil
				},
			}, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.stop() })
		client, err := rest.HTTPClientFor(s.admin())
		if err != nil {
			t.Fatal(err)
		}
		get := func(path string) *http.Response {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL()+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			return resp
		}
		eventually(t, "the server is alive", func() bool { return get("/livez").StatusCode == http.StatusOK })
		if code := get("/readyz").StatusCode; code == http.StatusOK {
			t.Errorf("round %d: the server says that it is ready", round)
		}
		for _, path := range []string{"/api/v1/namespaces", "/apis", "/openapi/v2", "/version", "/temporal/", "/apis/hykube.io/v1alpha1/plans",
			"/apis/sim.hykube.io/v1/sim-networks", "/apis/sim.hykube.io/v1/sim-networks?watch=true", "/apis/gone.hykube.io/v1", "/nothing"} {
			if resp := get(path); resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" || resp.Header.Get("Cache-Control") != "no-cache, private" {
				t.Errorf("round %d: GET %s: %s, Retry-After %q, Cache-Control %q; want 503 with a time, not to be cached", round, path, resp.Status,
					resp.Header.Get("Retry-After"), resp.Header.Get("Cache-Control"))
			}
		}
		ready.Store(true)
		if err := s.awaitReady(t.Context()); err != nil {
			t.Fatal(err)
		}
		if code := get("/apis/sim.hykube.io/v1/sim-networks").StatusCode; code != http.StatusOK {
			t.Errorf("round %d: the kinds of a ready server: %d", round, code)
		}
		w, err := objects(t, s.admin()).Resource(simNetworks).Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		stopped := make(chan error, 1)
		go func() { stopped <- s.stop() }()
		ended(t, w)
		if err := <-stopped; err != nil {
			t.Errorf("stop: %v", err)
		}
		if took := time.Since(begun); took > 8*time.Second {
			t.Errorf("the server took %s to stop with a watch open", took)
		}
	}
}

func asksItself(ctx context.Context, c *rest.Config) error {
	client, err := rest.HTTPClientFor(c)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Host+"/api/v1/namespaces", nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the server answers itself with %s", resp.Status)
	}
	return nil
}

// ended expects a watch to end without an error, so that its client continues from its last version.
func ended(t *testing.T, w watch.Interface) {
	t.Helper()
	late := time.After(10 * time.Second)
	for {
		select {
		case e, ok := <-w.ResultChan():
			if !ok {
				return
			}
			if e.Type == watch.Error {
				t.Errorf("the watch ended with %v", apierrors.FromObject(e.Object))
			}
		case <-late:
			t.Fatal("the watch has not ended within 10 s")
		}
	}
}
