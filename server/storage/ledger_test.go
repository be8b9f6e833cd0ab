package storage

import (
	"errors"
	"path/filepath"
	"testing"
)

// TestTheLedgerIsOnTheDisk checks the setting that no test of a running process can see: it matters after a power loss.
func TestTheLedgerIsOnTheDisk(t *testing.T) {
	c, err := openLedgerFile(filepath.Join(t.TempDir(), "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = errors.Join(c.Read.Close(), c.Write.Close()) }()
	const full = 2
	var synchronous int
	if err := c.Write.QueryRowContext(t.Context(), "PRAGMA synchronous").Scan(&synchronous); err != nil || synchronous != full {
		t.Errorf("synchronous is %d, want %d (FULL): %v", synchronous, full, err)
	}
}
