package storage

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apiserver/pkg/storage/value"

	"github.com/hykube/hykube/internal/atomicfile"
	"github.com/hykube/hykube/internal/index"
	"github.com/hykube/hykube/server/storage/records"
)

// This file stores the snapshot of the index in the data directory. The file "manifest" describes it and names the file
// with its blocks. A manifest is replaced as a whole, and only after the new blocks are on the disk, so a crash leaves
// the earlier snapshot. The ledger's key encrypts the manifest and each block.

const (
	// snapshotDir is the directory in the data directory, and snapshotManifest the file in it.
	snapshotDir      = "index"
	snapshotManifest = "manifest"
	// snapshotMagic begins a manifest. Its number is the version of the two files' form.
	snapshotMagic = "hykube index 1\n"
	// maxSnapshotBlock is the maximum size of a block. The largest block has one ResourceSet, and a database stores no
	// larger one.
	maxSnapshotBlock = 64 << 20
)

// Snapshots stores the snapshot of this server's index. It implements index.Snapshots. Only one call
// may run at a time.
type Snapshots struct {
	dir         string
	program     string
	transformer value.Transformer
	table       *table
	records     *records.Store
	disk        disk
	// current is the sealed manifest of the present snapshot; nil without one.
	current []byte
}

// manifest describes a snapshot.
type manifest struct {
	// Program identifies the build of Hykube that saved it. Another one may derive other entries from the same objects.
	Program string `json:"program"`
	// Format is the version of the form of the blocks.
	Format   int            `json:"format"`
	Position index.Position `json:"position"`
	// Rows is a hash of the last rows of the database up to the revision of the position. It identifies the database,
	// and its history: a database that was restored from a backup has other rows. A single row would not do: two
	// histories after one backup may both end with the deletion of the same object, at the same revision.
	Rows []byte `json:"rows"`
	// File is the name of the file with the blocks, Blocks their number, and Sum a hash of all of them. An
	// EncryptionConfiguration with the provider identity does not detect damage.
	File   string `json:"file"`
	Blocks int    `json:"blocks"`
	Sum    []byte `json:"sum"`
}

// Snapshots returns the store of the index's snapshot in a data directory. program identifies the build of Hykube.
func (s *Store) Snapshots(dataDir, program string) *Snapshots {
	return &Snapshots{
		dir: filepath.Join(dataDir, snapshotDir), program: program,
		transformer: s.encryption.transformer(ledgerResource), table: s.table, records: s.records, disk: s.disk,
	}
}

var (
	errSnapshotDamaged = errors.New("it is damaged")
	// errSnapshotSealed replaces the error of a decryption, whose remedy is to restore the database.
	errSnapshotSealed = errors.New("it is damaged, or encrypted with a key that this database does not have")
)

// sealContext binds a part of a snapshot to its place.
func sealContext(file string, block int) value.Context {
	return value.DefaultContext(fmt.Sprintf("/hykube.io-index/%s/%d", file, block))
}

// Load implements index.Snapshots.
func (s *Snapshots) Load(ctx context.Context,
	format int) (at index.Position, blocks iter.Seq2[[]byte, error], err error) {
	m, err := s.open(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		return at, nil, errors.New("there is no snapshot")
	}
	if err != nil {
		return at, nil, fmt.Errorf("open %q: %w", filepath.Join(s.dir, snapshotManifest), err)
	}
	if m.Program != s.program || m.Format != format {
		return at, nil, errors.New("another version of Hykube saved it")
	}
	if err := s.checkDatabase(ctx, m); err != nil {
		return at, nil, err
	}
	return m.Position, func(yield func([]byte, error) bool) {
		if err := s.readBlocks(ctx, m, yield); err != nil {
			yield(nil, fmt.Errorf("read %q: %w", filepath.Join(s.dir, m.File), err))
		}
	}, nil
}

// open reads the manifest.
func (s *Snapshots) open(ctx context.Context) (m manifest, err error) {
	data, err := os.ReadFile(filepath.Join(s.dir, snapshotManifest))
	if err != nil {
		return m, err
	}
	sealed, ok := bytes.CutPrefix(data, []byte(snapshotMagic))
	if !ok {
		return m, errors.New("another version of Hykube saved it, or it is damaged")
	}
	m, err = s.unseal(ctx, sealed)
	if err == nil {
		s.current = sealed
	}
	return m, err
}

func (s *Snapshots) unseal(ctx context.Context, sealed []byte) (m manifest, err error) {
	clear, _, err := s.transformer.TransformFromStorage(ctx, sealed, sealContext(snapshotManifest, 0))
	if err != nil {
		return m, errSnapshotSealed
	}
	if sum := sha256.Sum256(clear[min(len(clear), sha256.Size):]); !bytes.HasPrefix(clear, sum[:]) {
		return m, errSnapshotDamaged
	}
	return m, json.Unmarshal(clear[sha256.Size:], &m)
}

// checkDatabase returns an error unless the database has the history that a snapshot was made of.
func (s *Snapshots) checkDatabase(ctx context.Context, m manifest) error {
	rows, err := s.table.hash(ctx, m.Position.Objects)
	if err != nil {
		return err
	}
	if rows == nil || !bytes.Equal(rows, m.Rows) {
		return fmt.Errorf("the database does not have its revision %d: that revision was compacted, the encryption key was rotated, or the database was restored or replaced", m.Position.Objects)
	}
	last, err := s.records.Revision(ctx)
	if err != nil {
		return err
	}
	if at := max(m.Position.Records, m.Position.Statuses); last < at {
		return fmt.Errorf("the ledger is at revision %d, before the snapshot's %d: it was restored or replaced", last,
			at)
	}
	return nil
}

// hashedRows is the number of rows that identify the history of a database. The compaction must not have removed one of
// them, so it is small: kine keeps the last 1,000 revisions.
const hashedRows = 8

// hash returns a hash of the last rows up to a revision, or nil if there is no row with that revision.
func (t *table) hash(ctx context.Context, revision int64) ([]byte, error) {
	ctx, err := t.reading(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := t.db.QueryContext(ctx,
		t.query("SELECT id, name, value FROM kine WHERE id <= ? ORDER BY id DESC LIMIT ?"), revision, hashedRows)
	if err != nil {
		return nil, fmt.Errorf("read database: %w", err)
	}
	defer rows.Close()
	h, found := sha256.New(), false
	for rows.Next() {
		var id int64
		var name sql.NullString
		var content []byte
		if err := rows.Scan(&id, &name, &content); err != nil {
			return nil, fmt.Errorf("read database: %w", err)
		}
		found = found || id == revision
		_, _ = fmt.Fprintf(h, "%d %q %d ", id, name.String, len(content))
		_, _ = h.Write(content)
	}
	if err := rows.Err(); err != nil || !found {
		return nil, err
	}
	return h.Sum(nil), nil
}

// readBlocks yields the blocks.
func (s *Snapshots) readBlocks(ctx context.Context, m manifest, yield func([]byte, error) bool) (err error) {
	f, err := os.Open(filepath.Join(s.dir, filepath.Base(m.File)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	in, sum := bufio.NewReader(f), sha256.New()
	var sealed []byte
	for i := range m.Blocks {
		var size uint32
		if err := binary.Read(in, binary.LittleEndian, &size); err != nil {
			return err
		}
		if size > maxSnapshotBlock {
			return errSnapshotDamaged
		}
		sealed = append(sealed[:0], make([]byte, size)...)
		if _, err := io.ReadFull(in, sealed); err != nil {
			return err
		}
		_, _ = sum.Write(sealed) // a hash returns no error
		clear, _, err := s.transformer.TransformFromStorage(ctx, sealed, sealContext(m.File, i))
		if err != nil {
			return errSnapshotSealed
		}
		if clear, err = decompress(clear); err != nil {
			return err
		}
		if !yield(clear, nil) {
			return nil
		}
	}
	if !bytes.Equal(sum.Sum(nil), m.Sum) {
		return errSnapshotDamaged
	}
	return nil
}

// Save implements index.Snapshots.
func (s *Snapshots) Save(ctx context.Context, format int, at index.Position, blocks iter.Seq2[[]byte, error]) error {
	if err := s.disk.hasSpace(); err != nil {
		return err
	}
	rows, err := s.rowsAt(ctx, at)
	if err != nil {
		return err
	}
	m := manifest{Program: s.program, Format: format, Position: at, Rows: rows,
		File: strings.ToLower(rand.Text()) + ".blocks"}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	if err = s.writeBlocks(ctx, &m, blocks); err == nil {
		err = s.replaceManifest(ctx, m)
	}
	if err != nil {
		return errors.Join(err, s.removeBlocks(func(name string) bool { return name == m.File }))
	}
	return s.removeBlocks(func(name string) bool { return name != m.File })
}

// writeBlocks writes the file with the blocks, syncs it, and describes it in the manifest.
func (s *Snapshots) writeBlocks(ctx context.Context, m *manifest, blocks iter.Seq2[[]byte, error]) (err error) {
	f, err := os.OpenFile(filepath.Join(s.dir, m.File), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	sum := sha256.New()
	for block, err := range blocks {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		sealed, err := s.transformer.TransformToStorage(ctx, compress(block), sealContext(m.File, m.Blocks))
		if err != nil {
			return fmt.Errorf("encrypt: %w", err)
		}
		if _, err := f.Write(append(binary.LittleEndian.AppendUint32(nil, uint32(len(sealed))),
			sealed...)); err != nil {
			return err
		}
		_, _ = sum.Write(sealed)
		m.Blocks++
	}
	m.Sum = sum.Sum(nil)
	return f.Sync()
}

func (s *Snapshots) replaceManifest(ctx context.Context, m manifest) error {
	clear, err := json.Marshal(m)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(clear)
	sealed, err := s.transformer.TransformToStorage(ctx, append(sum[:], clear...), sealContext(snapshotManifest, 0))
	if err != nil {
		return fmt.Errorf("encrypt: %w", err)
	}
	if err := atomicfile.Write(filepath.Join(s.dir, snapshotManifest), append([]byte(snapshotMagic), sealed...),
		0o600); err != nil {
		return err
	}
	s.current = sealed
	return nil
}

// removeBlocks removes the files with blocks whose names match, and those that a crash left.
func (s *Snapshots) removeBlocks(match func(name string) bool) error {
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if name := e.Name(); name != snapshotManifest && match(name) {
			err = errors.Join(err, os.Remove(filepath.Join(s.dir, name)))
		}
	}
	return err
}

// Move implements index.Snapshots.
func (s *Snapshots) Move(ctx context.Context, at index.Position) error {
	if s.current == nil {
		return errors.New("there is no snapshot")
	}
	m, err := s.unseal(ctx, s.current)
	if err != nil {
		return err
	}
	if m.Rows, err = s.rowsAt(ctx, at); err != nil {
		return err
	}
	m.Position = at
	return s.replaceManifest(ctx, m)
}

// rowsAt returns the Rows of a manifest with a position.
func (s *Snapshots) rowsAt(ctx context.Context, at index.Position) ([]byte, error) {
	rows, err := s.table.hash(ctx, at.Objects)
	if err == nil && rows == nil {
		err = fmt.Errorf("the database no longer has revision %d", at.Objects)
	}
	return rows, err
}

// Outdated implements index.Snapshots.
func (s *Snapshots) Outdated(ctx context.Context) bool {
	if s.current == nil {
		return false
	}
	_, stale, err := s.transformer.TransformFromStorage(ctx, s.current, sealContext(snapshotManifest, 0))
	return stale || err != nil
}

// Remove implements index.Snapshots.
func (s *Snapshots) Remove() error {
	s.current = nil
	err := os.Remove(filepath.Join(s.dir, snapshotManifest))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, s.removeBlocks(func(string) bool { return true }))
}
