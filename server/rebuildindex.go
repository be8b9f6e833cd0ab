package server

import (
	"context"
	"errors"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hykube/hykube/internal/index"
)

// RebuildIndexPath is the URL of the rebuild of the index. POST starts one in the background. Both POST and GET return
// IndexRebuild.
const RebuildIndexPath = "/rebuild-index"

var errRebuilding = errors.New("a rebuild of the index is in progress")

// IndexRebuild describes the last rebuild of this server's index.
type IndexRebuild struct {
	Running bool `json:"running"`
	// Error is the reason why the last rebuild failed; empty if it did not.
	Error string `json:"error,omitempty"`
	index.Rebuilt
}

// indexRebuild holds the last rebuild.
type indexRebuild struct {
	mu   sync.Mutex
	last IndexRebuild
}

// addRebuildIndex serves RebuildIndexPath.
func (s *Server) addRebuildIndex() {
	s.addAdministration(RebuildIndexPath, func(r *http.Request) error { return s.startRebuild(r.Context()) },
		func(*http.Request) (any, error) {
			s.rebuild.mu.Lock()
			defer s.rebuild.mu.Unlock()
			return s.rebuild.last, nil
		})
}

// startRebuild starts a rebuild in the background.
func (s *Server) startRebuild(ctx context.Context) error {
	if err := s.wiring.Ready(); err != nil {
		return apierrors.NewServiceUnavailable("the server is not ready: " + err.Error())
	}
	s.rebuild.mu.Lock()
	defer s.rebuild.mu.Unlock()
	if s.rebuild.last.Running {
		return apierrors.NewConflict(kschema.GroupResource{Resource: "rebuild-index"}, "index", errRebuilding)
	}
	s.rebuild.last = IndexRebuild{Running: true}
	s.background.Go(func() {
		rebuilt, err := s.wiring.RebuildIndex(context.WithoutCancel(ctx))
		s.rebuild.mu.Lock()
		defer s.rebuild.mu.Unlock()
		s.rebuild.last = IndexRebuild{Rebuilt: rebuilt}
		switch {
		case err != nil:
			s.rebuild.last.Error = err.Error()
			s.log.Error("cannot rebuild the index; the next plan reads it again", "error", err)
		case rebuilt.Different > 0:
			s.log.Error("the index was wrong, and is right now; report this with the log", "different",
				rebuilt.Different, "differences", rebuilt.Differences)
		default:
			s.log.Info("rebuilt the index; it was right", "objects", rebuilt.Objects, "skipped", rebuilt.Skipped)
		}
	})
	return nil
}
