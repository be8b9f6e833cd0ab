package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/hykube/hykube/internal/diff"
	"github.com/hykube/hykube/server"
	"github.com/hykube/hykube/server/auditlog"
	"github.com/hykube/hykube/server/storage"
)

func newAuditCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Read and check the audit log",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newAuditVerifyCommand(), newAuditCallsCommand())
	return cmd
}

type auditVerifyOptions struct {
	dataDir   string
	file      string
	keyFile   string
	store     storage.Config
	endpoint  string
	filesOnly bool
}

func newAuditVerifyCommand() *cobra.Command {
	o := &auditVerifyOptions{dataDir: server.DefaultDataDir()}
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Find changed and missing records of the audit log",
		Long: `Find changed and missing records of the audit log.

Run the command on the server's machine as the user of the server, because it needs the key in the data directory. It
compares the files with the end of the log: it asks the server for it, or reads it from the database if the server does
not run. The command exits with 0 if the log is complete and unchanged, and with 1 if it is not.`,
		Example: `  # the audit log of a server in /var/lib/hykube
  hykube audit verify --data-dir /var/lib/hykube

  # files that were copied from a server, without its database
  hykube audit verify --file ./copy/audit.log --key-file ./copy/audit.key --files-only`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVarP(&o.dataDir, "data-dir", "d", o.dataDir, "Data directory of the server.")
	fs.StringVarP(&o.file, "file", "f", "",
		"Audit log, without the numbers of rotated files; the default is audit/audit.log in the data directory.")
	fs.StringVar(&o.keyFile, "key-file", "", "Key of the audit log; the default is audit.key in the data directory.")
	const offline = ", as for hykube server; needed only while the server does not run."
	fs.StringVar(&o.store.Endpoint, "datastore-endpoint", "", "Database of the server"+offline)
	fs.StringVar(&o.store.KeyFile, "encryption-key-file", "", "Root key of the server"+offline)
	fs.StringVar(&o.endpoint, "datastore-endpoint-file", "", "File with the database of the server"+offline)
	fs.StringVar(&o.store.EncryptionConfig, "encryption-provider-config", "",
		"EncryptionConfiguration of the server"+offline)
	fs.BoolVar(&o.filesOnly, "files-only", false,
		"Check the files alone. Missing records at the beginning and at the end are then not found.")
	return cmd
}

func (o *auditVerifyOptions) run(cmd *cobra.Command) error {
	server.BridgeLogs(slog.New(slog.DiscardHandler)) // the database logs its start and stop; errors are returned
	o.store.DataDir = o.dataDir
	if o.file == "" {
		o.file = server.AuditLogPath(o.dataDir)
	}
	if o.keyFile == "" {
		o.keyFile = server.AuditKeyPath(o.dataDir)
	}
	var err error
	if o.store.Endpoint, err = server.DatastoreEndpoint(o.store.Endpoint, o.endpoint); err != nil {
		return err
	}
	key, err := auditlog.ReadKey(o.keyFile)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w; name the server's data directory with --data-dir, or the key with --key-file", err)
	}
	if err != nil {
		return err
	}
	report, err := o.verify(cmd.Context(), key)
	if err == nil && len(report.Problems) > 0 {
		report, err = o.verify(cmd.Context(), key) // a running server may have rotated the files meanwhile
	}
	if err != nil {
		return err
	}
	return printReport(cmd.OutOrStdout(), report)
}

func (o *auditVerifyOptions) verify(ctx context.Context, key []byte) (*auditlog.Report, error) {
	if o.filesOnly {
		return auditlog.Verify(o.file, key, nil)
	}
	head, err := server.AuditHead(ctx, o.store)
	if err != nil {
		return nil, fmt.Errorf("read the end of the audit log: %w; use --files-only to check the files alone", err)
	}
	return auditlog.Verify(o.file, key, head)
}

// printReport prints the findings, and returns an error if there are problems.
func printReport(w io.Writer, r *auditlog.Report) error {
	for _, f := range r.Notes {
		fmt.Fprintln(w, "note: "+place(f)+f.Text)
	}
	for _, f := range r.Problems {
		fmt.Fprintln(w, place(f)+f.Text)
	}
	if len(r.Problems) > 0 {
		return errors.New("verify audit log: records were changed or are missing")
	}
	fmt.Fprintf(w, "complete and unchanged: records %d to %d in %s, from %s to %s\n", r.First, r.Last,
		diff.Plural(len(r.Files), "file"),
		r.From.UTC().Format(time.RFC3339), r.To.UTC().Format(time.RFC3339))
	return nil
}

// place returns the file, line and time of a finding.
func place(f auditlog.Finding) string {
	text := f.File + ":"
	if f.Line > 0 {
		text += fmt.Sprintf("%d:", f.Line)
	}
	if !f.Time.IsZero() {
		text += " " + f.Time.UTC().Format(time.RFC3339) + ":"
	}
	return text + " "
}
