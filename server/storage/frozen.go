package storage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// frozenKey is the key of kine that says that the database was restored.
const frozenKey = "/hykube.io-restored"

// restoredInterval is the time between two reads of the note by a worker.
const restoredInterval = 3 * time.Second

// Restored says that a database was restored from a backup. Until it is thawed, no server with it changes
// infrastructure: another server may have the original, and the clouds may have changed since the backup.
type Restored struct {
	// Backup is the time of the backup, and At that of the restore.
	Backup time.Time `json:"backup"`
	At     time.Time `json:"at"`
	// Thawed is the time of the thaw of all namespaces; zero while any may be frozen.
	Thawed time.Time `json:"thawed,omitzero"`
	// Namespaces has the times of the thaws of single namespaces.
	Namespaces map[string]time.Time `json:"namespaces,omitempty"`
	// Waiting has the plans that were approved before the thaw, and not finished. They wait until an administrator lets
	// them go on.
	Waiting map[types.UID]bool `json:"waiting,omitempty"`
}

// Frozen reports whether a namespace is frozen; "" is one that was not thawed on its own.
func (r *Restored) Frozen(namespace string) bool {
	return r != nil && r.Thawed.IsZero() && r.Namespaces[namespace].IsZero()
}

// ErrNotFrozen is the error of a thaw of a database that is not frozen.
var ErrNotFrozen = errors.New("the database is not frozen")

// Restored returns what a restore has noted; nil for a database that was not restored.
func (s *Store) Restored() *Restored { return s.restored.Load() }

// loadRestored reads the note of a restore.
func (s *Store) loadRestored(ctx context.Context) error {
	data, revision, err := s.table.get(ctx, frozenKey)
	if err != nil || revision == 0 {
		return err
	}
	r := new(Restored)
	if err := json.Unmarshal(data, r); err != nil {
		return fmt.Errorf("read the note of the restore: %w", err)
	}
	s.restored.Store(r)
	return nil
}

// followRestored reads the note of a restore regularly until ctx ends. The server of this worker may thaw the database.
func (s *Store) followRestored(ctx context.Context, log *slog.Logger) {
	if s.Restored() == nil { // a restore ends the lease of each worker
		return
	}
	ticker := time.NewTicker(restoredInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := s.loadRestored(ctx); err != nil && ctx.Err() == nil {
			log.Warn("cannot read whether the restored database is thawed", "error", err)
		}
	}
}

// Thaw notes that servers may change infrastructure of these namespaces again, or of all if there are none, except by
// the plans of waiting. For namespaces that are thawed, it only changes these.
func (s *Store) Thaw(ctx context.Context, namespaces []string, waiting map[types.UID]bool) error {
	r := s.Restored()
	if r == nil {
		return ErrNotFrozen
	}
	thawed, now := *r, time.Now().UTC().Truncate(time.Second)
	thawed.Namespaces, thawed.Waiting = maps.Clone(r.Namespaces), waiting
	for _, namespace := range namespaces {
		if thawed.Namespaces == nil {
			thawed.Namespaces = map[string]time.Time{}
		}
		if r.Frozen(namespace) {
			thawed.Namespaces[namespace] = now
		}
	}
	if len(namespaces) == 0 && r.Frozen("") {
		thawed.Namespaces, thawed.Thawed = nil, now
	}
	data, err := json.Marshal(thawed)
	if err != nil {
		return err
	}
	_, revision, err := s.table.get(ctx, frozenKey)
	if err != nil {
		return err
	}
	_, ok, err := putAt(ctx, s.client.KV, frozenKey, data, revision)
	if err == nil && !ok {
		err = errors.New("another request was faster; look at the result, and try again")
	}
	if err != nil {
		return fmt.Errorf("thaw the database: %w", err)
	}
	s.restored.Store(&thawed)
	return nil
}
