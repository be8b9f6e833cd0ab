package access

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestAuthorityNeedsItsOwnKey puts the key of one authority beside the certificate of another.
func TestAuthorityNeedsItsOwnKey(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b"} {
		if _, err := loadAuthority(dir, name, name, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Rename(filepath.Join(dir, "b.key"), filepath.Join(dir, "a.key")); err != nil {
		t.Fatal(err)
	}
	if _, err := loadAuthority(dir, "a", "a", time.Now()); err == nil {
		t.Error("the pair is accepted")
	}
}
