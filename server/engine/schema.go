package engine

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-version"
	"go.temporal.io/server/common/persistence"
	"go.temporal.io/server/schema"
	sqliteschema "go.temporal.io/server/schema/sqlite"
	_ "modernc.org/sqlite" // the driver "sqlite", which Temporal's plugin uses, too
)

// database is one of Temporal's databases: its file, the directory of its schema in Temporal's embedded files, and the
// schema version of this build.
type database struct {
	file    string
	schema  string
	version string
}

func databases(dir string) (main, visibility database) {
	return database{filepath.Join(dir, "temporal.db"), "sqlite/v3/temporal", sqliteschema.Version},
		database{filepath.Join(dir, "visibility.db"), "sqlite/v3/visibility", sqliteschema.VisibilityVersion}
}

// escaped returns the file's path as SQLite requires it in a URI.
func (d database) escaped() string { return (&url.URL{Path: d.file}).EscapedPath() }

// ensureSchema creates the schema in an empty file and upgrades an older one. Each runs in one transaction, so that a
// crash leaves the old state. Temporal never migrates a SQLite file, and its schema tool is a command. The tables with
// the version are those of that tool.
func ensureSchema(ctx context.Context, d database, logger *slog.Logger) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("prepare engine database %q: %w", d.file, err)
		}
	}()
	db, err := sql.Open("sqlite", "file:"+d.escaped()+
		"?_pragma=journal_mode(wal)&_pragma=busy_timeout(5000)&_txlock=immediate")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)

	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // no effect after Commit
	var tables int
	if err := tx.QueryRowContext(ctx,
		"SELECT count(*) FROM sqlite_master WHERE type='table'").Scan(&tables); err != nil {
		return err
	}
	if tables == 0 {
		if err := setUpSchema(ctx, tx, d); err != nil {
			return fmt.Errorf("set up its schema: %w", err)
		}
		return tx.Commit()
	}
	found, err := updateSchema(ctx, tx, d)
	if err != nil {
		return err
	}
	if found != d.version {
		logger.InfoContext(ctx, "engine database updated", "file", d.file, "from", found, "to", d.version)
	}
	return tx.Commit()
}

func setUpSchema(ctx context.Context, tx *sql.Tx, d database) error {
	const versions = `
CREATE TABLE schema_version(version_partition INT not null, db_name VARCHAR(255) not null,
	creation_time DATETIME(6), curr_version VARCHAR(64), min_compatible_version VARCHAR(64),
	PRIMARY KEY (version_partition, db_name));
CREATE TABLE schema_update_history(version_partition INT not null, year int not null, month int not null,
	update_time DATETIME(6) not null, description VARCHAR(255), manifest_md5 VARCHAR(64), new_version VARCHAR(64),
	old_version VARCHAR(64), PRIMARY KEY (version_partition, year, month, update_time));`
	if _, err := tx.ExecContext(ctx, versions); err != nil {
		return err
	}
	if err := runFile(ctx, tx, path.Join(d.schema, "schema.sql")); err != nil {
		return err
	}
	return recordVersion(ctx, tx, "0", d.version, "initial version")
}

// updateSchema applies the schema steps from the file's version, which it returns, to the version of this build.
func updateSchema(ctx context.Context, tx *sql.Tx, d database) (found string, err error) {
	if err := tx.QueryRowContext(ctx, "SELECT curr_version FROM schema_version WHERE version_partition=0 AND db_name=?",
		schemaRow).Scan(&found); err != nil {
		return "", fmt.Errorf("read its schema version: %w", err)
	}
	have, err := version.NewVersion(found)
	if err != nil {
		return "", fmt.Errorf("read its schema version: %w", err)
	}
	want := version.Must(version.NewVersion(d.version))
	if have.GreaterThan(want) {
		return "", fmt.Errorf("it has schema version %s and this build knows %s: a newer server used it; start that, or restore a backup", found, d.version)
	}
	steps, err := schemaSteps(d.schema, have, want)
	if err != nil {
		return "", err
	}
	at := found
	for _, step := range steps {
		for _, name := range step.SchemaUpdateCqlFiles {
			if err := runFile(ctx, tx, path.Join(step.dir, name)); err != nil {
				return "", fmt.Errorf("update it to schema version %s: %w", step.CurrVersion, err)
			}
		}
		if err := recordVersion(ctx, tx, at, step.CurrVersion, step.Description); err != nil {
			return "", err
		}
		at = step.CurrVersion
	}
	if at != d.version {
		return "", fmt.Errorf("this build has no migration from schema version %s to %s", at, d.version)
	}
	return found, nil
}

// schemaStep is upstream's manifest of one schema version.
type schemaStep struct {
	CurrVersion          string
	Description          string
	SchemaUpdateCqlFiles []string

	dir     string
	version *version.Version
}

func schemaSteps(name string, after, to *version.Version) ([]schemaStep, error) {
	manifests, err := fs.Glob(schema.Assets(), path.Join(name, "versioned", "v*", "manifest.json"))
	if err != nil {
		return nil, err
	}
	var steps []schemaStep
	for _, manifest := range manifests {
		data, err := fs.ReadFile(schema.Assets(), manifest)
		if err != nil {
			return nil, err
		}
		step := schemaStep{dir: path.Dir(manifest)}
		if err := json.Unmarshal(data, &step); err != nil {
			return nil, fmt.Errorf("read schema step %q: %w", manifest, err)
		}
		if step.version, err = version.NewVersion(step.CurrVersion); err != nil {
			return nil, fmt.Errorf("read schema step %q: %w", manifest, err)
		}
		if step.version.GreaterThan(after) && !step.version.GreaterThan(to) {
			steps = append(steps, step)
		}
	}
	slices.SortFunc(steps, func(a, b schemaStep) int { return a.version.Compare(b.version) })
	return steps, nil
}

// runFile executes the SQL statements of one of Temporal's embedded files.
func runFile(ctx context.Context, tx *sql.Tx, name string) error {
	data, err := fs.ReadFile(schema.Assets(), name)
	if err != nil {
		return err
	}
	statements, err := persistence.LoadAndSplitQueryFromReaders([]io.Reader{bytes.NewReader(data)})
	if err != nil {
		return fmt.Errorf("read %q: %w", name, err)
	}
	for _, statement := range statements {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("execute %q: %w", strings.Join(strings.Fields(statement), " "), err)
		}
	}
	return nil
}

// schemaRow is the database name in the version tables. Temporal's tool uses the file's path, but a data directory may
// be moved.
const schemaRow = "hykube"

func recordVersion(ctx context.Context, tx *sql.Tx, from, to, description string) error {
	now := time.Now().UTC()
	_, err := tx.ExecContext(ctx, "REPLACE INTO schema_version(version_partition, db_name, creation_time, curr_version, min_compatible_version) VALUES (0,?,?,?,?)",
		schemaRow, now, to, to)
	if err == nil {
		_, err = tx.ExecContext(ctx, "INSERT INTO schema_update_history(version_partition, year, month, update_time, old_version, new_version, manifest_md5, description) VALUES (0,?,?,?,?,?,'',?)",
			now.Year(), int(now.Month()), now, from, to, description)
	}
	return err
}
