package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/hykube/hykube/server"
)

// rotationPoll is the time between two requests for the progress of a rotation.
const rotationPoll = time.Second

// reconnectTimeout is the time for which the wait for a rotation continues without an answer of the server.
const reconnectTimeout = time.Minute

type rotateKeysOptions struct {
	administratorOptions
	wait bool
	out  io.Writer
}

func newRotateKeysCommand() *cobra.Command {
	o := &rotateKeysOptions{}
	cmd := &cobra.Command{
		Use:   "rotate-keys [encryption] [certificates]",
		Short: "Replace the encryption key and the certificates of a running server",
		Long: `Replace the encryption key and the certificates of a running server; without arguments, both.

encryption    The server adds a data key, which encrypts from now on. In the background, it encrypts all rows of the
              database with it, and then drops the old key. A restart continues that. The server also encrypts the data
              keys with the first root key of its file.
certificates  The server replaces its serving certificate and the one in admin.kubeconfig. The authorities stay.

The command needs the rights of an administrator: it uses admin.kubeconfig of the data directory, or --kubeconfig.`,
		Example: `  # Replace both, and wait until no row needs the old key
  hykube rotate-keys --wait

  # Show the keys, and the progress of a rotation
  hykube rotate-keys status

  # Wait until a running rotation has finished
  hykube rotate-keys status --wait`,
		ValidArgs: []string{server.RotateEncryption, server.RotateCertificates},
		Args: func(cmd *cobra.Command, args []string) error {
			if err := cobra.OnlyValidArgs(cmd, args); err != nil {
				return fmt.Errorf("%w; name %s, %s, or neither for both", err, server.RotateEncryption,
					server.RotateCertificates)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.out = cmd.OutOrStdout()
			return o.rotate(cmd.Context(), args)
		},
	}
	status := &cobra.Command{
		Use:   "status",
		Short: "Show the encryption keys, their rotation and the expiry of certificates",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.out = cmd.OutOrStdout()
			return o.status(cmd.Context())
		},
	}
	o.addFlags(cmd.PersistentFlags())
	cmd.PersistentFlags().BoolVar(&o.wait, "wait", false, "Wait until the rotation of the encryption key has finished.")
	cmd.AddCommand(status)
	return cmd
}

func (o *rotateKeysOptions) ask(ctx context.Context, method string, parts []string) (keys server.Keys, err error) {
	query := url.Values{}
	for _, part := range parts {
		query.Set(part, "")
	}
	return keys, o.request(ctx, method, server.RotateKeysPath+"?"+query.Encode(), &keys)
}

func (o *rotateKeysOptions) rotate(ctx context.Context, parts []string) error {
	if len(parts) == 0 {
		parts = []string{server.RotateEncryption, server.RotateCertificates}
	}
	keys, err := o.ask(ctx, http.MethodPost, parts)
	if err != nil {
		return fmt.Errorf("rotate keys: %w", err)
	}
	if slices.Contains(parts, server.RotateCertificates) {
		fmt.Fprintf(o.out, "The server has a new serving certificate, and admin.kubeconfig a new client certificate, until %s.\n", day(keys.Certificates["administrator"]))
	}
	if !slices.Contains(parts, server.RotateEncryption) {
		return nil
	}
	fmt.Fprintf(o.out, "The data key %s encrypts from now on. `hykube rotate-keys status` shows the progress for the rows of the database.\n", keys.Encryption.Keys[0].ID)
	if keys, err = o.rotated(ctx, keys); err != nil {
		return err
	}
	if !keys.Encryption.Rotating {
		fmt.Fprintln(o.out, "No row needs the old key. It is dropped.")
	}
	return nil
}

// rotated returns the keys after the rotation of the encryption key has finished. Without --wait, it returns keys. A
// server may be away for reconnectTimeout: it continues the rotation when it runs again.
func (o *rotateKeysOptions) rotated(ctx context.Context, keys server.Keys) (server.Keys, error) {
	var away time.Time // since when the server does not answer
	for o.wait && keys.Encryption.Rotating {
		select {
		case <-ctx.Done():
			return keys, ctx.Err()
		case <-time.After(rotationPoll):
		}
		now, err := o.ask(ctx, http.MethodGet, nil)
		_, answered := errors.AsType[*apierrors.StatusError](err)
		switch {
		case err == nil:
			keys, away = now, time.Time{}
		case away.IsZero() && !answered:
			away = time.Now()
			fmt.Fprintln(o.out, "The server does not answer. The command keeps trying for a minute. When the server runs again, it continues the rotation.")
		case answered || time.Since(away) > reconnectTimeout:
			return keys, fmt.Errorf("wait for rotation: %w", err)
		}
	}
	return keys, nil
}

func (o *rotateKeysOptions) status(ctx context.Context) error {
	keys, err := o.ask(ctx, http.MethodGet, nil)
	if err != nil {
		return fmt.Errorf("show keys: %w", err)
	}
	if keys, err = o.rotated(ctx, keys); err != nil {
		return err
	}
	for i, key := range keys.Encryption.Keys {
		use := "encrypts"
		if i > 0 {
			use = "decrypts, until the rotation has finished"
		}
		name := key.ID
		if name == "" {
			name = "encryption.key"
		}
		fmt.Fprintf(o.out, "data key %s: %s\n", name, use)
	}
	p := keys.Encryption.Progress
	switch {
	case keys.Encryption.Rotating && p.Revision > 0:
		fmt.Fprintf(o.out, "rotation: at revision %d of %d, %d rows encrypted again\n", p.Revision, p.Last, p.Rewritten)
	case keys.Encryption.Rotating:
		fmt.Fprintf(o.out, "rotation: waits for running writes, %d rows encrypted again\n", p.Rewritten)
	case !p.Finished.IsZero():
		fmt.Fprintf(o.out, "rotation: finished at %s, %d rows encrypted again\n", p.Finished.UTC().Format(time.RFC3339),
			p.Rewritten)
	}
	if keys.Encryption.Rotating && p.Message != "" {
		fmt.Fprintf(o.out, "last error: %s\n", p.Message)
	}
	for _, name := range slices.Sorted(maps.Keys(keys.Certificates)) {
		fmt.Fprintf(o.out, "certificate %s: until %s\n", name, day(keys.Certificates[name]))
	}
	return nil
}

func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }
