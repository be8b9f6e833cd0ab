package storage

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apiserver/pkg/storage/value"

	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/server/storage/records"
)

const (
	// rotationKey is the key of the progress in the database.
	rotationKey = "/hykube.io-keys/rotation"
	// rotationPage is the number of rows that a rotation reads at once.
	rotationPage = 50
	// rotationSettle is the time after which no write with the old key is in progress. It is the maximum age of the
	// keyring that a server uses, and the time of its longest request.
	rotationSettle = keyringAge + 70*time.Second
	// rotationRetry is the delay after a failed pass.
	rotationRetry = 30 * time.Second
	// progressEvery is the time between two writes of the progress.
	progressEvery = 2 * time.Second
)

// Steps of a rotation.
const (
	stepAdd     = "add key"
	stepPass    = "begin pass"
	stepAdded   = "added key"
	stepPage    = "write page"
	stepDrop    = "drop key"
	stepDropped = "dropped key"
)

// ErrRotating says that a rotation is in progress on this server.
var ErrRotating = errors.New("a rotation of the encryption key is in progress; to wait for its end: hykube rotate-keys status --wait")

// KeyStatus describes the encryption keys and their last rotation.
type KeyStatus struct {
	// Keys are the data keys; the first one encrypts.
	Keys []KeyInfo `json:"keys"`
	// Rotating is true until every row is encrypted with the first key.
	Rotating bool     `json:"rotating"`
	Progress Progress `json:"progress,omitzero"`
}

// KeyInfo describes a data key.
type KeyInfo struct {
	ID      string    `json:"id"`
	Created time.Time `json:"created"`
}

// Progress is the progress of the last rotation.
type Progress struct {
	Key      string    `json:"key"`
	Started  time.Time `json:"started,omitzero"`
	Finished time.Time `json:"finished,omitzero"`
	// Part is the part of the database that this pass visits: 0 for the objects, 1 for the ledger.
	Part int `json:"part,omitempty"`
	// Revision is the revision of the last row that this pass visited. Last is the highest revision of the part.
	Revision int64 `json:"revision,omitempty"`
	Last     int64 `json:"last,omitempty"`
	// Rewritten is the number of rows that were encrypted again.
	Rewritten int64  `json:"rewritten,omitempty"`
	Message   string `json:"message,omitempty"`
}

// rotator replaces the data key while the server runs. A keyring with more than one key is an unfinished rotation.
type rotator struct {
	encryption *encryption
	parts      []part
	// snapshots is read-locked during a backup.
	snapshots *sync.RWMutex
	client    clientv3.KV
	log       *slog.Logger
	settle    time.Duration
	retry     time.Duration

	// at is called at the steps of a rotation, so that tests can end the process there; nil does nothing.
	at func(step string)

	ctx     context.Context
	done    *sync.WaitGroup
	mu      sync.Mutex
	running bool
}

// part is a part of the database with encrypted rows.
type part interface {
	// page returns up to limit rows after a revision, in the order of their revisions.
	page(ctx context.Context, revision int64, limit int) ([]row, error)
	// update replaces the values of rows that still have their revisions.
	update(ctx context.Context, rows []row) error
	// last returns the last revision.
	last(ctx context.Context) (int64, error)
	// truncateLog removes old values from the database's log.
	truncateLog(ctx context.Context) error
}

// ledgerRows are the rows of the ledger's tables.
type ledgerRows struct{ *records.Store }

func (l ledgerRows) page(ctx context.Context, revision int64, limit int) ([]row, error) {
	entries, err := l.Page(ctx, revision, limit)
	rows := make([]row, len(entries))
	for i, e := range entries {
		rows[i] = row{id: e.Revision, name: ledgerPrefix + e.Key, value: e.Value}
	}
	return rows, err
}

func (l ledgerRows) update(ctx context.Context, rows []row) error {
	entries := make([]ledger.Entry, len(rows))
	for i, r := range rows {
		entries[i] = ledger.Entry{Key: strings.TrimPrefix(r.name, ledgerPrefix), Value: r.value, Revision: r.id}
	}
	return l.Replace(ctx, entries)
}

func (l ledgerRows) last(ctx context.Context) (int64, error) { return l.Revision(ctx) }

func (l ledgerRows) truncateLog(ctx context.Context) error { return l.EmptyLog(ctx) }

func (r *rotator) reach(step string) {
	if r.at != nil {
		r.at(step)
	}
}

// start adds a data key, which encrypts from now on, and encrypts all rows with it in the background. It resumes an
// unfinished rotation instead of adding a key.
func (r *rotator) start(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running {
		return ErrRotating
	}
	ring, err := r.encryption.ring.current(ctx, 0)
	if err != nil {
		return err
	}
	next := ring.keys
	if len(ring.Keys) == 1 {
		next.Keys = append([]dataKey{newDataKey(time.Now())}, ring.Keys...)
	}
	root, err := r.encryption.ring.root.transformer()
	if err != nil {
		return err
	}
	r.reach(stepAdd)
	if err := r.encryption.ring.save(ctx, next, ring.revision, root); err != nil {
		return err
	}
	r.reach(stepAdded)
	r.begin()
	return nil
}

// resume continues an unfinished rotation after a restart.
func (r *rotator) resume(ctx context.Context) error {
	ring, err := r.encryption.ring.current(ctx, 0)
	if err != nil {
		return err
	}
	if len(ring.Keys) > 1 {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.begin()
	}
	return nil
}

// begin runs the rotation. The caller holds mu.
func (r *rotator) begin() {
	r.running = true
	r.done.Add(1)
	go func() {
		defer r.done.Done()
		r.run(r.ctx)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.running = false
	}()
}

// run visits all rows until a pass that began after the settling time found none with an old key. Then it drops the old
// keys.
func (r *rotator) run(ctx context.Context) {
	var key string
	var promoted time.Time // the time at which this run found that new writes use key
	for ctx.Err() == nil {
		begun := time.Now()
		ring, err := r.encryption.ring.current(ctx, 0)
		if err == nil && ring.Keys[0].ID != key {
			key, promoted = ring.Keys[0].ID, time.Now()
		}
		var stale int64
		if err == nil {
			stale, err = r.pass(ctx, key)
		}
		if err == nil && stale == 0 && begun.Sub(promoted) >= r.settle {
			if err = r.drop(ctx, ring); err == nil {
				return
			}
		}
		wait := r.settle - time.Since(promoted)
		if err != nil && ctx.Err() == nil {
			r.log.Error("cannot encrypt all rows with the new key; the server keeps the old key and tries again",
				"error", err)
			r.note(ctx, func(p *Progress) { p.Message = err.Error() })
			wait = r.retry
		}
		_ = pause(ctx, max(wait, 0)) // ctx ends the loop
	}
}

// pass visits all rows and encrypts those again that are not encrypted with the key. It returns their number. It skips
// rows that it cannot decrypt, and returns an error at the end.
func (r *rotator) pass(ctx context.Context, key string) (stale int64, err error) {
	r.reach(stepPass)
	progress, _, err := r.progress(ctx)
	if err != nil {
		return 0, err
	}
	if progress.Key != key {
		progress = Progress{Key: key, Started: time.Now().UTC().Truncate(time.Second)}
	}
	// A pass that a restart interrupted continues. It counts as a pass that found old rows, so another one follows.
	if progress.Part > 0 || progress.Revision > 0 {
		stale++
	}
	var broken []error
	for ; progress.Part < len(r.parts); progress.Part, progress.Revision = progress.Part+1, 0 {
		changed, failed, err := r.passPart(ctx, r.parts[progress.Part], &progress)
		broken = append(broken, failed...)
		if stale += changed; err != nil {
			return stale, err
		}
	}
	progress.Part, progress.Message = 0, ""
	r.note(ctx, func(p *Progress) { *p = progress })
	if len(broken) > 0 {
		return stale, fmt.Errorf("%d rows cannot be decrypted, such as this one: %w", len(broken), broken[0])
	}
	return stale, nil
}

// passPart visits the rows of one part after progress.Revision. It returns the number of rows that it encrypted again.
func (r *rotator) passPart(ctx context.Context, p part, progress *Progress) (stale int64, broken []error, err error) {
	if progress.Last, err = p.last(ctx); err != nil {
		return 0, nil, err
	}
	for noted := time.Now(); ; {
		begun := time.Now()
		rows, err := p.page(ctx, progress.Revision, rotationPage)
		if err != nil || len(rows) == 0 {
			return stale, broken, err
		}
		changed, failed := r.reencryptRows(ctx, rows)
		broken = append(broken, failed...)
		if len(changed) > 0 {
			r.reach(stepPage)
			if err := p.update(ctx, changed); err != nil {
				return stale, broken, err
			}
		}
		stale += int64(len(changed))
		progress.Rewritten += int64(len(changed))
		progress.Revision = rows[len(rows)-1].id
		if time.Since(noted) > progressEvery {
			noted = time.Now()
			r.note(ctx, func(p *Progress) { *p = *progress })
		}
		if err := pause(ctx, time.Since(begun)); err != nil { // leaves half of the time to requests
			return stale, broken, err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// reencryptRows returns the rows that were not encrypted with the current key, now encrypted with it.
func (r *rotator) reencryptRows(ctx context.Context, rows []row) (changed []row, failed []error) {
	for _, one := range rows {
		gr, ok := resourceOf(one.name)
		if !ok {
			continue
		}
		t := r.encryption.transformer(gr)
		value, valueChanged, err := reencrypt(ctx, t, one.name, one.value)
		old, oldChanged, oldErr := reencrypt(ctx, t, one.name, one.old)
		if err := cmp.Or(err, oldErr); err != nil {
			failed = append(failed, fmt.Errorf("decrypt %q at revision %d: %w", one.name, one.id, err))
			continue
		}
		if valueChanged || oldChanged {
			changed = append(changed, row{one.id, one.name, value, old})
		}
	}
	return changed, failed
}

// reencrypt encrypts the value of a row with the current key, unless it is encrypted with that key already.
func reencrypt(ctx context.Context, t value.Transformer, name string,
	data []byte) (out []byte, changed bool, err error) {
	if len(data) == 0 {
		return data, false, nil
	}
	clear, stale, err := t.TransformFromStorage(ctx, data, value.DefaultContext(name))
	if err != nil || !stale {
		return data, false, err
	}
	out, err = t.TransformToStorage(ctx, clear, value.DefaultContext(name))
	return out, !bytes.Equal(out, data), err
}

// truncateLogs removes old values from the logs of the database. It waits for a backup first: SQLite would make all
// writers wait for the snapshot of the backup.
func (r *rotator) truncateLogs(ctx context.Context) error {
	r.snapshots.Lock()
	defer r.snapshots.Unlock()
	for _, p := range r.parts {
		if err := p.truncateLog(ctx); err != nil {
			return err
		}
	}
	return nil
}

// drop removes the old keys from the keyring, unless the keyring has changed. No row needs them.
func (r *rotator) drop(ctx context.Context, ring *loadedKeys) error {
	if err := r.truncateLogs(ctx); err != nil {
		return err
	}
	root, err := r.encryption.ring.root.transformer()
	if err != nil {
		return err
	}
	r.reach(stepDrop)
	if err := r.encryption.ring.save(ctx, keys{Keys: ring.Keys[:1]}, ring.revision, root); err != nil {
		return err
	}
	r.reach(stepDropped)
	r.note(ctx, func(p *Progress) { p.Finished, p.Message = time.Now().UTC().Truncate(time.Second), "" })
	r.log.Info("all rows are encrypted with the new key; the old keys are dropped", "key", ring.Keys[0].ID)
	return nil
}

// status returns the keys and the progress.
func (r *rotator) status(ctx context.Context) (KeyStatus, error) {
	ring, err := r.encryption.ring.current(ctx, 0)
	if err != nil {
		return KeyStatus{}, err
	}
	s := KeyStatus{Rotating: len(ring.Keys) > 1}
	for _, k := range ring.Keys {
		s.Keys = append(s.Keys, KeyInfo{k.ID, k.Created})
	}
	s.Progress, _, err = r.progress(ctx)
	return s, err
}

// progress returns the progress in the database, and its revision; 0 if there is none.
func (r *rotator) progress(ctx context.Context) (p Progress, revision int64, err error) {
	response, err := r.client.Get(ctx, rotationKey)
	if err != nil {
		return p, 0, fmt.Errorf("read progress of the rotation: %w", err)
	}
	if len(response.Kvs) == 0 {
		return p, 0, nil
	}
	if err := json.Unmarshal(response.Kvs[0].Value, &p); err != nil {
		return p, 0, fmt.Errorf("decode progress of the rotation: %w", err)
	}
	return p, response.Kvs[0].ModRevision, nil
}

// note changes the progress in the database. It only logs an error: without the progress, a rotation starts again with
// the first row.
func (r *rotator) note(ctx context.Context, change func(*Progress)) {
	p, revision, err := r.progress(ctx)
	if err == nil {
		change(&p)
		var data []byte
		if data, err = json.Marshal(p); err == nil {
			_, _, err = putAt(ctx, r.client, rotationKey, data, revision)
		}
	}
	if err != nil && ctx.Err() == nil {
		r.log.Warn("cannot note the progress of the rotation", "error", err)
	}
}
