package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"filippo.io/age"
	"github.com/spf13/cobra"

	"github.com/hykube/hykube/server"
	"github.com/hykube/hykube/server/storage"
)

// ageIntro is the start of a file that age has encrypted.
const ageIntro = "age-encryption.org/"

type restoreOptions struct {
	store    storage.Config
	endpoint string
	identity string
	verify   bool
}

func newRestoreCommand() *cobra.Command {
	o := &restoreOptions{}
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Restore a backup into an empty database",
		Long: `Restore a backup of "hykube backup" into an empty database of any kind: SQLite in the data directory, or the one of
--datastore-endpoint. The command changes nothing if the backup is truncated, changed or of a newer version, if the root
key is another one, or if the database is not empty.

The root key of the backup must be there before: put it at encryption.key in the data directory, or name its file.

A server on the restored database is frozen: it answers reads and makes plans, but it applies none, and runs no
schedule. "kubectl hykube verify -A" compares the infrastructure, and "kubectl hykube thaw --all" lets the server act.`,
		Example: `  # Restore into SQLite
  install -D -m 600 root.key /var/lib/hykube/encryption.key
  hykube restore hykube-20260102T150405Z.tar --data-dir /var/lib/hykube

  # Restore into PostgreSQL
  hykube restore hykube.tar --data-dir /var/lib/hykube --datastore-endpoint postgres://user:password@host/hykube

  # Check a backup: restore it into a temporary database, and compare all rows
  hykube restore hykube.tar --verify --encryption-key-file root.key`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0], cmd.OutOrStdout()) },
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVarP(&o.store.DataDir, "data-dir", "d", server.DefaultDataDir(), "Data directory for the server.")
	fs.StringVar(&o.store.Endpoint, "datastore-endpoint", "",
		"Database, as for hykube server; SQLite in the data directory when it is left out.")
	fs.StringVar(&o.endpoint, "datastore-endpoint-file", "", "File with the database.")
	fs.BoolVar(&o.store.CreateDatabase, "create-database", false, "Create the database if it does not exist.")
	fs.StringVar(&o.store.KeyFile, "encryption-key-file", "",
		"File with the root key; encryption.key in the data directory when it is left out.")
	fs.StringVar(&o.store.EncryptionConfig, "encryption-provider-config", "",
		"EncryptionConfiguration of the server that made the backup.")
	fs.StringVar(&o.identity, "age-identity", "", "File with the age identity of a backup that is encrypted with age.")
	fs.BoolVar(&o.verify, "verify", false,
		"Restore into a temporary SQLite database, compare all rows, and remove it again.")
	return cmd
}

func (o *restoreOptions) run(ctx context.Context, file string, out io.Writer) (err error) {
	server.BridgeLogs(slog.New(slog.DiscardHandler)) // the database logs its start and stop; errors are returned
	if o.store.Endpoint, err = server.DatastoreEndpoint(o.store.Endpoint, o.endpoint); err != nil {
		return err
	}
	archive := func() (io.ReadCloser, error) { return o.open(file) }
	if o.verify {
		return o.compare(ctx, file, archive, out)
	}
	m, err := server.Restore(ctx, o.store, archive)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Restored %d rows of objects and %d records of the ledger, as they were at %s.\n", m.Objects.Rows,
		m.Ledger.Rows, m.Time.Format(time.RFC3339))
	fmt.Fprintln(out, "Start the server. It is frozen: compare the infrastructure with kubectl hykube verify -A, and then let it act with kubectl hykube thaw --all.")
	return nil
}

// compare verifies a backup.
func (o *restoreOptions) compare(ctx context.Context, file string, archive storage.Archive, out io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "hykube-verify-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	m, err := storage.Verify(ctx, o.store, dir, archive)
	if err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	fmt.Fprintf(out, "%s: complete and unchanged. %d rows of objects and %d records of the ledger, as they were at %s, written by version %s.\n",
		file, m.Objects.Rows, m.Ledger.Rows, m.Time.Format(time.RFC3339), m.Version)
	return nil
}

// backupFile is a backup that is read.
type backupFile struct {
	io.Reader
	file *os.File
}

func (f backupFile) Close() error { return f.file.Close() }

// open opens a backup, and decrypts one that age has encrypted.
func (o *restoreOptions) open(path string) (_ io.ReadCloser, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	buffered := bufio.NewReaderSize(f, 1<<16)
	if begin, _ := buffered.Peek(len(ageIntro)); string(begin) != ageIntro {
		return backupFile{buffered, f}, nil
	}
	if o.identity == "" {
		return nil, fmt.Errorf("%q is encrypted with age: name the file with the identity with --age-identity", path)
	}
	keys, err := os.Open(o.identity)
	if err != nil {
		return nil, err
	}
	defer keys.Close() //nolint:errcheck // it was only read
	identities, err := age.ParseIdentities(keys)
	if err != nil {
		return nil, fmt.Errorf("read --age-identity %q: %w", o.identity, err)
	}
	clear, err := age.Decrypt(buffered, identities...)
	if err != nil {
		return nil, fmt.Errorf("decrypt %q: %w", path, err)
	}
	return backupFile{clear, f}, nil
}
