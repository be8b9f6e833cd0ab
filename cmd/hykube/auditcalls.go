package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/hykube/hykube/internal/audit"
	"github.com/hykube/hykube/server"
	"github.com/hykube/hykube/server/auditlog"
	"github.com/hykube/hykube/server/storage/backup"
)

type auditCallsOptions struct {
	dataDir, file string
	backup        restoreOptions
	afterBackup   string
}

func newAuditCallsCommand() *cobra.Command {
	o := &auditCallsOptions{}
	cmd := &cobra.Command{
		Use:   "calls",
		Short: "List the calls to providers that changed infrastructure",
		Long: `List the calls to providers that changed infrastructure, or whose outcome is not known.

With --after-backup, the command lists the calls that a backup does not know. After a restore, these are the difference
between the records and the cloud: import what was created, before a plan creates it again. The command does not need
the key of the log; "hykube audit verify" checks the log.`,
		Example: `  # what the lost server did after the backup, from its audit log
  hykube audit calls --file ./old/audit.log --after-backup hykube-20260102T150405Z.tar`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.OutOrStdout()) },
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVarP(&o.dataDir, "data-dir", "d", server.DefaultDataDir(), "Data directory of the server.")
	fs.StringVarP(&o.file, "file", "f", "",
		"Audit log, without the numbers of rotated files; the default is audit/audit.log in the data directory.")
	fs.StringVar(&o.afterBackup, "after-backup", "", "Only calls that this backup does not know.")
	fs.StringVar(&o.backup.identity, "age-identity", "",
		"File with the age identity of a backup that is encrypted with age.")
	return cmd
}

func (o *auditCallsOptions) run(out io.Writer) error {
	head, err := o.head()
	if err != nil {
		return err
	}
	calls, err := auditlog.Calls(cmp.Or(o.file, server.AuditLogPath(o.dataDir)), head)
	if err != nil {
		return err
	}
	calls = slices.DeleteFunc(calls,
		func(c auditlog.Call) bool { return c.Outcome == "Failed" || c.Operation == audit.Open })
	if len(calls) == 0 {
		fmt.Fprintln(out, "No calls.")
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "BEGAN\tOPERATION\tNAMESPACE\tRESOURCE\tPLAN\tOUTCOME")
	for _, c := range calls {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s.%s\t%s\t%s\n", c.Began.UTC().Format(time.RFC3339), c.Operation, c.Namespace,
			c.Type, c.Name, c.Plan, cmp.Or(c.Outcome, "Unknown"))
	}
	return w.Flush()
}

// head returns the number of the last record that the backup knows; 0 without a backup.
func (o *auditCallsOptions) head() (_ uint64, err error) {
	if o.afterBackup == "" {
		return 0, nil
	}
	from, err := o.backup.open(o.afterBackup)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	checked, err := backup.Check(from)
	if err != nil {
		return 0, fmt.Errorf("read %q: %w", o.afterBackup, err)
	}
	if checked.Audit == nil {
		return 0, fmt.Errorf("the server had no audit log when it wrote %q: leave out --after-backup, and compare the times (the backup is of %s)", o.afterBackup, checked.Time.UTC().Format(time.RFC3339))
	}
	return checked.Audit.Sequence, nil
}
