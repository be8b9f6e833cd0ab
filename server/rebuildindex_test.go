package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"

	"github.com/hykube/hykube/internal/index"
	"github.com/hykube/hykube/server"
)

// TestRebuildIndex starts rebuilds that succeed, fail and overlap.
func TestRebuildIndex(t *testing.T) {
	results := make(chan error)
	s := startT(t, server.Config{DataDir: t.TempDir(), Wire: func(ctx context.Context, h *server.Components) (server.Wiring, error) {
		w, err := testWiring(ctx, h)
		w.RebuildIndex = func(context.Context) (index.Rebuilt, error) {
			err := <-results
			return index.Rebuilt{Objects: 3, Different: 1, Differences: []string{"namespace team: sim_a.x"}}, err
		}
		return w, err
	}})
	if err := s.awaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(s.admin())
	if err != nil {
		t.Fatal(err)
	}
	ask := func(method string) (state server.IndexRebuild, err error) {
		result := client.CoreV1().RESTClient().Verb(method).RequestURI(server.RebuildIndexPath).Do(t.Context())
		if err := result.Error(); err != nil {
			return state, err
		}
		raw, err := result.Raw()
		return state, errors.Join(err, json.Unmarshal(raw, &state))
	}
	if _, err := ask(http.MethodPut); !apierrors.IsMethodNotSupported(err) {
		t.Errorf("PUT: %v", err)
	}
	if state, err := ask(http.MethodGet); err != nil || state.Running {
		t.Errorf("before the first rebuild: %+v, %v", state, err)
	}
	for _, failure := range []error{nil, errors.New("the disk is broken")} {
		if state, err := ask(http.MethodPost); err != nil || !state.Running {
			t.Errorf("POST: %+v, %v", state, err)
		}
		if _, err := ask(http.MethodPost); !apierrors.IsConflict(err) {
			t.Errorf("a second rebuild at the same time: %v", err)
		}
		results <- failure
		var state server.IndexRebuild
		eventually(t, "the rebuild ends", func() bool {
			state, err = ask(http.MethodGet)
			return err != nil || !state.Running
		})
		if failed := state.Error != ""; err != nil || failed != (failure != nil) || state.Objects != 3 || state.Different != 1 {
			t.Errorf("after a rebuild with the error %v: %+v, %v", failure, state, err)
		}
	}
}
