package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
)

// authoritiesKey is the storage key of the certificate authorities of all servers on the database.
const authoritiesKey = "keys/authorities"

// Authorities returns the certificate authorities of all servers on the database. If there are none, or with replace,
// it stores own, which are those of this server, and returns them.
func (l *Ledger) Authorities(ctx context.Context, own []byte, replace bool) ([]byte, error) {
	for {
		stored, revision, err := l.kv.Get(ctx, authoritiesKey)
		switch {
		case err != nil && !errors.Is(err, ErrNotFound):
			return nil, fmt.Errorf("read certificate authorities: %w", err)
		case err == nil && (!replace || bytes.Equal(stored, own)):
			return stored, nil
		}
		_, err = l.kv.Put(ctx, authoritiesKey, own, revision)
		if err == nil {
			return own, nil
		}
		if !errors.Is(err, ErrConflict) {
			return nil, fmt.Errorf("save certificate authorities: %w", err)
		}
	}
}
