package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/hykube/hykube/server"
	"github.com/hykube/hykube/server/storage"
)

// toSQLite is the value of --to for SQLite in the data directory.
const toSQLite = "sqlite"

type migrateOptions struct {
	from, to         storage.Config
	fromFile, toFile string
	cancel           bool
}

func newMigrateCommand() *cobra.Command {
	o := &migrateOptions{}
	cmd := &cobra.Command{
		Use:   "migrate --to DATABASE",
		Short: "Move an installation to another database",
		Long: `Move the installation of a data directory to another database of any kind, which must be empty. Stop the server and its
standbys and workers first.

The command compares all rows before it commits them. From its start on, no server uses the old database any more. Start
the server with the same data directory and the new database: it continues the plans. If the command ends early,
repeat it, or go back with --cancel.`,
		Example: `  # From SQLite to PostgreSQL
  hykube migrate --to postgres://user:password@host/hykube
  hykube server --datastore-endpoint postgres://user:password@host/hykube

  # From PostgreSQL to SQLite
  hykube migrate --datastore-endpoint-file endpoint --to sqlite

  # Go back, after a migration that did not end
  hykube migrate --to postgres://user:password@host/hykube --cancel`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.run(cmd.Context(), cmd.OutOrStdout()); err != nil {
				return fmt.Errorf("migrate: %w", err)
			}
			return nil
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVarP(&o.from.DataDir, "data-dir", "d", server.DefaultDataDir(), "Data directory of the server.")
	fs.StringVar(&o.from.Endpoint, "datastore-endpoint", "",
		"Database of the server, as for hykube server; SQLite in the data directory when it is left out.")
	fs.StringVar(&o.fromFile, "datastore-endpoint-file", "", "File with the database of the server.")
	fs.StringVar(&o.to.Endpoint, "to", "",
		`New database, such as "postgres://user:password@host:5432/hykube", or "sqlite" for SQLite in the data directory.`)
	fs.StringVar(&o.toFile, "to-file", "", "File with the value of --to.")
	fs.BoolVar(&o.to.CreateDatabase, "create-database", false, "Create the new database if it does not exist.")
	fs.StringVar(&o.from.KeyFile, "encryption-key-file", "",
		"File with the root key; encryption.key in the data directory when it is left out.")
	fs.StringVar(&o.from.EncryptionConfig, "encryption-provider-config", "", "EncryptionConfiguration of the server.")
	fs.BoolVar(&o.cancel, "cancel", false, "Let servers use the old database again. The new one must be empty.")
	cmd.MarkFlagsOneRequired("to", "to-file")
	cmd.MarkFlagsMutuallyExclusive("to", "to-file")
	return cmd
}

func (o *migrateOptions) run(ctx context.Context, out io.Writer) (err error) {
	server.BridgeLogs(slog.New(slog.DiscardHandler)) // the database logs its start and stop; errors are returned
	if o.from.Endpoint, err = server.DatastoreEndpoint(o.from.Endpoint, o.fromFile); err != nil {
		return err
	}
	if o.to.Endpoint, err = server.DatastoreEndpoint(o.to.Endpoint, o.toFile); err != nil {
		return err
	}
	switch o.to.Endpoint {
	case "":
		return errors.New("--to is empty: name the new database")
	case toSQLite:
		o.to.Endpoint = ""
	}
	o.to.KeyFile, o.to.EncryptionConfig = o.from.KeyFile, o.from.EncryptionConfig
	if o.cancel {
		if err := server.CancelMigration(ctx, o.from, o.to); err != nil {
			return err
		}
		fmt.Fprintln(out, "Servers use the old database again.")
		return nil
	}
	m, err := server.Migrate(ctx, o.from, o.to)
	if err != nil {
		return err
	}
	if m.Before {
		fmt.Fprintln(out, "The new database has this installation already. Start the server with it.")
		return nil
	}
	fmt.Fprintf(out, "Moved %d rows of objects and %d records of the ledger, and compared all. Start the server with the new database.\n", m.Objects.Rows, m.Ledger.Rows)
	return nil
}
