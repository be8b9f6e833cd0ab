package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"filippo.io/age"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/hykube/hykube/internal/atomicfile"
	"github.com/hykube/hykube/server"
	"github.com/hykube/hykube/server/storage/backup"
)

type backupOptions struct {
	administratorOptions
	output     string
	recipients []string
}

func newBackupCommand() *cobra.Command {
	o := &backupOptions{}
	cmd := &cobra.Command{
		Use:   "backup",
		Short: "Back up the database of a running server",
		Long: `Back up the database of a running server: all objects, the ledger with the states and the plans, the rights, and the data
keys, as they are at one moment. Applies continue meanwhile. The command works with each kind of database, and
"hykube restore" restores the backup into any kind.

The values in a backup are encrypted as they are in the database, so a restore needs the same root key. The backup does
not have that key: keep a copy of it elsewhere. The names of objects are not encrypted, unless you name a recipient.

A backup has a temporary name until it is complete and on the disk. The command needs the rights of an administrator:
it uses admin.kubeconfig of the data directory, or --kubeconfig.`,
		Example: `  # Write a backup with the time in its name into a directory
  hykube backup --output /var/backups/hykube

  # Write a backup to a file, which only the owner of an age identity can read
  hykube backup --output hykube.tar.age --age-recipient age1...`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr()); err != nil {
				return fmt.Errorf("back up: %w", err)
			}
			return nil
		},
	}
	o.addFlags(cmd.Flags())
	cmd.Flags().StringVarP(&o.output, "output", "o", "",
		`File for the backup, a directory for a file with the time in its name, or "-" for the standard output.`)
	cmd.Flags().StringArrayVar(&o.recipients, "age-recipient", nil,
		"Encrypt the backup with age for this recipient (age1...); repeatable.")
	_ = cmd.MarkFlagRequired("output")
	return cmd
}

func (o *backupOptions) run(ctx context.Context, out, errOut io.Writer) error {
	to, err := parseRecipients(o.recipients)
	if err != nil {
		return err
	}
	var m *backup.Manifest
	if o.output == "-" {
		if m, err = o.write(ctx, out, to); err == nil {
			fmt.Fprintln(errOut, backupLine("standard output", m))
		}
		return err
	}
	path := o.path(time.Now())
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%q exists already: name a new file, or a directory", path)
	}
	err = atomicfile.Fill(path, 0o600, func(w io.Writer) (err error) {
		m, err = o.write(ctx, w, to)
		return err
	})
	if err == nil {
		fmt.Fprintln(out, backupLine(path, m))
	}
	return err
}

// path returns the path of the backup.
func (o *backupOptions) path(now time.Time) string {
	info, err := os.Stat(o.output)
	if err != nil || !info.IsDir() {
		return o.output
	}
	name := "hykube-" + now.UTC().Format("20060102T150405Z") + ".tar"
	if len(o.recipients) > 0 {
		name += ".age"
	}
	return filepath.Join(o.output, name)
}

// backupLine says what a backup has.
func backupLine(place string, m *backup.Manifest) string {
	size := resource.NewQuantity(m.Objects.Bytes+m.Ledger.Bytes, resource.BinarySI)
	return fmt.Sprintf("%s: %d rows of objects up to revision %d, %d records of the ledger, %s bytes. A restore needs %s.",
		place, m.Objects.Rows, m.Objects.Revision, m.Ledger.Rows, size, m.RootKey)
}

func parseRecipients(texts []string) (to []age.Recipient, err error) {
	for _, text := range texts {
		r, err := age.ParseX25519Recipient(text)
		if err != nil {
			return nil, fmt.Errorf("use --age-recipient %q: %w; age-keygen prints the recipient of a new identity",
				text, err)
		}
		to = append(to, r)
	}
	return to, nil
}

// write writes the answer of the server, and checks that it is a complete backup.
func (o *backupOptions) write(ctx context.Context, w io.Writer, to []age.Recipient) (_ *backup.Manifest, err error) {
	answer, err := o.stream(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, answer.Close()) }()
	end := func() error { return nil }
	if len(to) > 0 {
		sealed, err := age.Encrypt(w, to...)
		if err != nil {
			return nil, err
		}
		w, end = sealed, sealed.Close
	}
	checked, err := backup.Check(io.TeeReader(answer, w))
	if err != nil {
		return nil, fmt.Errorf("read the answer of the server: %w; its log says why, so try again", err)
	}
	return &checked.Manifest, end()
}

// stream asks the server for a backup.
func (o *backupOptions) stream(ctx context.Context) (io.ReadCloser, error) {
	config, err := clientConfig(o.kubeconfig, o.dataDir)
	if err != nil {
		return nil, err
	}
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, err
	}
	return client.Verb(http.MethodPost).RequestURI(server.BackupPath).Stream(ctx)
}
