package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/hykube/hykube/server/storage"
	"github.com/hykube/hykube/server/storage/backup"
)

// BackupPath is the URL of backups. POST returns the archive of a new one, in the format of package backup. An answer
// that ends before its manifest is no backup.
const BackupPath = "/backup"

var errBackingUp = errors.New("another backup is being made")

// addBackup serves BackupPath. One backup at a time reads the database.
func (s *Server) addBackup() {
	s.generic.Handler.NonGoRestfulMux.HandleFunc(BackupPath, func(w http.ResponseWriter, r *http.Request) {
		refuse := func(err error) {
			responsewriters.ErrorNegotiated(err, legacyscheme.Codecs, kschema.GroupVersion{}, w, r)
		}
		if r.Method != http.MethodPost {
			refuse(apierrors.NewMethodNotSupported(kschema.GroupResource{Resource: "backup"}, r.Method))
			return
		}
		if !s.backingUp.TryLock() {
			refuse(apierrors.NewConflict(kschema.GroupResource{Resource: "backup"}, "", errBackingUp))
			return
		}
		defer s.backingUp.Unlock()
		out := &countingWriter{ResponseWriter: w}
		w.Header().Set("Content-Type", "application/x-tar")
		switch err := s.config.store.Backup(r.Context(), out, s.backupInfo()); {
		case err == nil:
		case out.written == 0:
			w.Header().Del("Content-Type")
			refuse(err)
		default:
			s.log.Warn("a backup did not end", "bytes", out.written, "error", err)
			panic(http.ErrAbortHandler) // so that the client sees that the answer is not complete
		}
	})
}

// backupInfo returns what the manifest says about this server.
func (s *Server) backupInfo() storage.BackupInfo {
	info := storage.BackupInfo{Version: Version}
	if s.config.auditLog != nil {
		head := s.config.auditLog.Head()
		info.Audit = &backup.AuditHead{Sequence: head.Sequence, Code: head.Code}
	}
	return info
}

// countingWriter counts the bytes of an answer.
type countingWriter struct {
	http.ResponseWriter
	written int
}

func (w *countingWriter) Write(p []byte) (int, error) {
	n, err := w.ResponseWriter.Write(p)
	w.written += n
	return n, err
}

// Restore fills an empty database with a backup, for a server in a data directory that no server uses now.
func Restore(ctx context.Context, cfg storage.Config, archive storage.Archive) (m *backup.Manifest, err error) {
	err = inDataDir(cfg.DataDir, func(dir *dataDir) (err error) {
		cfg.DataDir = dir.path
		m, err = storage.Restore(ctx, cfg, archive)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("restore: %w", err)
	}
	return m, nil
}

// Migrate moves the installation of a data directory that no server uses now from one database to another. See
// storage.Migrate.
func Migrate(ctx context.Context, from, to storage.Config) (m storage.Migrated, err error) {
	return m, betweenDatabases(&from, &to, func() (err error) {
		m, err = storage.Migrate(ctx, from, to, Version)
		return err
	})
}

// CancelMigration lets servers use the first database again. See storage.CancelMigration.
func CancelMigration(ctx context.Context, from, to storage.Config) error {
	return betweenDatabases(&from, &to, func() error { return storage.CancelMigration(ctx, from, to) })
}

// betweenDatabases calls do with the data directory of from, which is locked meanwhile, in both configurations.
func betweenDatabases(from, to *storage.Config, do func() error) error {
	return inDataDir(from.DataDir, func(dir *dataDir) (err error) {
		if from.Server.Owner, err = dir.owner(); err != nil {
			return err
		}
		from.Server.Version, from.Server.Address = Version, "hykube migrate"
		from.DataDir, to.DataDir = dir.path, dir.path
		return do()
	})
}

// inDataDir calls do with a data directory, which is locked meanwhile.
func inDataDir(path string, do func(*dataDir) error) error {
	dir, err := openDataDir(path)
	if err != nil {
		return err
	}
	return errors.Join(do(dir), dir.Close())
}
