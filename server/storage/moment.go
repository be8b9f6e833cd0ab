package storage

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/hykube/hykube/internal/atomicfile"
	"github.com/hykube/hykube/server/storage/records"
)

const (
	// momentKey is the key of kine that notes a revision of the ledger.
	momentKey = "/hykube.io-moment"
	// momentFile is the file in the data directory that notes the database.
	momentFile = "database.json"
	// momentInterval is the time between two looks whether the ledger has changed, and remoteMomentInterval that for a
	// database server, which holds both stores. idleMoment is the time after which it is noted without a change.
	momentInterval       = time.Second
	remoteMomentInterval = 10 * time.Second
	idleMoment           = time.Minute
)

// moment notes the revisions that belong together. The note in kine has the identity and the revision of the ledger.
type moment struct {
	// Identity is the identity of the ledger.
	Identity string `json:"identity"`
	// Objects and Ledger are revisions.
	Objects int64     `json:"objects,omitempty"`
	Ledger  int64     `json:"ledger"`
	At      time.Time `json:"at"`
	// Files identifies the files of SQLite. A copy has other ones.
	Files map[string]fileID `json:"files,omitempty"`
}

// fileID identifies a file on its file system. A volume keeps it when another machine mounts it. The number of the
// device is no part, because it differs after another mount.
type fileID struct {
	// Born is the time at which the file was made, which no copy keeps; empty if the file system does not have it.
	Born string `json:"born,omitempty"`
	// Inode identifies a file without a time of birth. By chance, a copy may have the same.
	Inode uint64 `json:"inode"`
}

func (id fileID) same(other fileID) bool {
	if id.Born != "" && other.Born != "" {
		return id.Born == other.Born
	}
	return id.Inode == other.Inode
}

// moments notes which revisions of the objects and of the ledger belong together: in kine, in the ledger, and in the
// data directory. Each note is a lower bound, so a store that is behind one is older than the store with the note.
type moments struct {
	table   *table
	records *records.Store
	client  clientv3.KV // set before the first note
	// dir is the data directory. files are the paths of the files of SQLite; none for a database server.
	dir   string
	files []string
	// copied is true if the files of the database are not those of the directory's last note.
	copied   bool
	known    moment // the note of the directory at the start
	interval time.Duration
	log      *slog.Logger
	stop     context.CancelFunc
	done     sync.WaitGroup
}

func newMoments(cfg Config, t *table, r *records.Store) (*moments, error) {
	m := &moments{table: t, records: r, dir: cfg.DataDir, log: cfg.Logger,
		interval: cmp.Or(cfg.CanaryInterval, remoteMomentInterval)}
	if cfg.Endpoint == "" {
		m.interval = cmp.Or(cfg.CanaryInterval, momentInterval)
		m.files = []string{filepath.Join("db", "state.db"), filepath.Join("db", "ledger.db")}
	}
	return m, m.read()
}

// read reads the note of the directory; none leaves known empty.
func (m *moments) read() error {
	data, err := os.ReadFile(m.path())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(data, &m.known)
	}
	if err != nil {
		return fmt.Errorf("read %q, which notes the database of this directory: %w; restore it from a backup, or remove it", m.path(), err)
	}
	return nil
}

func (m *moments) path() string { return filepath.Join(m.dir, momentFile) }

// checkEmpty returns an error if the database is empty and the directory knows another one. With Config.CreateDatabase,
// the directory belongs to the empty one.
func (m *moments) checkEmpty(ctx context.Context, cfg Config) error {
	identity, err := m.records.Identity(ctx)
	if err != nil || identity != "" || m.known.Identity == "" {
		return err
	}
	if last, err := m.table.last(ctx); err != nil || last > 0 {
		return err
	}
	if cfg.CreateDatabase {
		m.log.Warn("the database is empty; the data directory belongs to it from now on, as --create-database says",
			"noted", m.known.At)
		m.known = moment{}
		return nil
	}
	return fmt.Errorf("the database is empty, and this data directory belongs to one that has objects (noted %s): give the right --datastore-endpoint, "+
		"or restore the database; start with --create-database only if the infrastructure of the former one need not be known", m.known.At.Format(time.RFC3339))
}

// check returns an error if the stores are not of one moment. With Config.AcceptRestored, it logs the error instead.
func (m *moments) check(ctx context.Context, cfg Config) error {
	err := m.compare(ctx)
	if _, differ := errors.AsType[*momentError](err); differ && cfg.AcceptRestored {
		m.log.Warn("accepted as --accept-restored says; remove that flag again", "found", err)
		err = nil
	}
	if err != nil {
		return err
	}
	m.copied, err = m.isCopy()
	if m.copied && cfg.AcceptRestored {
		m.copied = false
		m.log.Info("the database is a copy, which is the installation from now on, as --accept-restored says; remove that flag again")
	}
	if m.copied {
		m.log.Warn("the files of the database are a copy: approved plans wait, because the server with the original may apply them. "+
			"If it never runs again, start this server once with --accept-restored", "noted", m.known.At)
	}
	return err
}

// momentError says that the stores are not of one moment.
type momentError struct{ text string }

func (e *momentError) Error() string {
	return e.text + "; restore the data directory and the database from one backup. If there is none, start once with --accept-restored: " +
		"then kubectl hykube status -A names the objects without a record and the records without an object; settle these before you approve a plan"
}

// errOtherLedger and errNoObjects say that the objects and the ledger are not of one installation.
var (
	errOtherLedger = errors.New("the ledger is missing or belongs to other objects: restore db/state.db and db/ledger.db, or the whole database, from one backup")
	errNoObjects   = errors.New("the ledger is newer than the objects: restore db/state.db and db/ledger.db, or the whole database, from one backup")
)

// compare returns a *momentError if one store is behind what another one notes. Before the first note in the objects,
// the ledger has no record.
func (m *moments) compare(ctx context.Context) error {
	objects, err := m.table.last(ctx)
	if err != nil {
		return err
	}
	ledger, err := m.records.Revision(ctx) // before the note in kine, which is older than any record
	if err != nil {
		return err
	}
	identity, err := m.records.Identity(ctx)
	if err != nil {
		return err
	}
	notedObjects, at, err := m.records.Moment(ctx)
	if err != nil {
		return err
	}
	var inObjects moment
	data, revision, err := m.table.get(ctx, momentKey)
	if err == nil && revision != 0 {
		err = json.Unmarshal(data, &inObjects)
	}
	if err != nil {
		return fmt.Errorf("read the moment of the objects: %w", err)
	}
	switch known := m.known; {
	case revision == 0 && ledger > records.FirstRevision:
		return errNoObjects
	case revision != 0 && inObjects.Identity != identity:
		return errOtherLedger
	case inObjects.Ledger > ledger:
		return &momentError{behind("ledger", "objects", inObjects.Ledger, ledger, inObjects.At)}
	case notedObjects > objects:
		return &momentError{behind("objects", "ledger", notedObjects, objects, at)}
	case known.Identity != "" && known.Identity != identity:
		return &momentError{fmt.Sprintf("the database is not the one that this data directory belongs to (noted %s)",
			known.At.Format(time.RFC3339))}
	case known.Ledger > ledger:
		return &momentError{behind("ledger", "data directory", known.Ledger, ledger, known.At)}
	case known.Objects > objects:
		return &momentError{behind("objects", "data directory", known.Objects, objects, known.At)}
	}
	return nil
}

// behind says that a store is older than another one.
func behind(older, newer string, noted, has int64, at time.Time) string {
	return fmt.Sprintf("the store of the %s is older than the %s, by at least %d writes: it has revision %d, and the %s noted revision %d at %s",
		older, newer, noted-has, has, newer, noted, at.Format(time.RFC3339))
}

// isCopy reports whether the files of the database are not those of the directory's note.
func (m *moments) isCopy() (bool, error) {
	now, err := m.identify()
	if err != nil || m.known.Files == nil {
		return false, err
	}
	for path, id := range now {
		if was, ok := m.known.Files[path]; ok && !was.same(id) {
			return true, nil
		}
	}
	return false, nil
}

func (m *moments) identify() (map[string]fileID, error) {
	if m.files == nil {
		return nil, nil
	}
	ids := map[string]fileID{}
	for _, path := range m.files {
		id, err := identifyFile(filepath.Join(m.dir, path))
		if err != nil {
			return nil, fmt.Errorf("identify the files of the database: %w", err)
		}
		ids[path] = id
	}
	return ids, nil
}

// run notes the moment now, and then regularly until close.
func (m *moments) run(ctx context.Context) error {
	last, err := m.note(ctx)
	if err != nil {
		return err
	}
	ctx, m.stop = context.WithCancel(ctx)
	m.done.Go(func() {
		ticker := time.NewTicker(m.interval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
			ledger, err := m.records.Revision(ctx)
			if err == nil && (ledger != last.Ledger || time.Since(last.At) > max(idleMoment, m.interval)) {
				var noted moment
				if noted, err = m.note(ctx); err == nil {
					last = noted
				}
			}
			if err != nil && ctx.Err() == nil {
				m.log.Debug("cannot note the revisions of the objects and of the ledger", "error", err)
			}
		}
	})
	return nil
}

// close ends the notes with a last one.
func (m *moments) close() {
	if m.stop == nil {
		return
	}
	m.stop()
	m.done.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if _, err := m.note(ctx); err != nil {
		m.log.Debug("cannot note the revisions of the objects and of the ledger", "error", err)
	}
}

// note notes the moment: first the revision of the ledger in kine, then the revision of that note elsewhere. Without a
// note in kine, because another server made one at the same time, it notes nothing.
func (m *moments) note(ctx context.Context) (now moment, err error) {
	now.At = time.Now().UTC().Truncate(time.Millisecond)
	if now.Ledger, err = m.records.Revision(ctx); err != nil {
		return now, err
	}
	if now.Identity, err = m.records.Identity(ctx); err != nil {
		return now, err
	}
	data, err := json.Marshal(now)
	if err != nil {
		return now, err
	}
	_, revision, err := m.table.get(ctx, momentKey)
	if err != nil {
		return now, err
	}
	written, ok, err := putAt(ctx, m.client, momentKey, data, revision)
	if err != nil || !ok {
		return now, err
	}
	if err := m.sync(); err != nil {
		return now, err
	}
	now.Objects = written
	if err := m.records.NoteMoment(ctx, written, now.At); err != nil {
		return now, err
	}
	return now, m.write(now)
}

// sync makes the commits of SQLite durable, which kine does not. Without that, a power loss could take a revision that
// the ledger has noted. SQLite keeps no locks on this file, so its descriptor may be closed.
func (m *moments) sync() error {
	if m.files == nil {
		return nil
	}
	f, err := os.Open(filepath.Join(m.dir, m.files[0]+"-wal"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// write writes the note of the data directory. A copy keeps the files of the original until the administrator accepts
// it.
func (m *moments) write(now moment) (err error) {
	if now.Files = m.known.Files; !m.copied {
		if now.Files, err = m.identify(); err != nil {
			return err
		}
	}
	data, err := json.Marshal(now)
	if err != nil {
		return err
	}
	return atomicfile.Write(m.path(), append(data, '\n'), 0o600)
}

// Identity returns the identity of the database, which no other installation has, except one on a copy.
func (s *Store) Identity(ctx context.Context) (string, error) {
	return s.records.Identity(ctx)
}

// Copied reports whether the files of the database are a copy of those that the directory knows, and the administrator
// has not accepted them.
func (s *Store) Copied() bool { return s.moments.copied }
