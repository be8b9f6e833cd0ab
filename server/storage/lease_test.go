package storage

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/hykube/hykube/server/storage/records"
	"github.com/hykube/hykube/tests/harness/database"
)

// TestAStandbyNeedsTheRootKey starts servers beside one that serves the database.
func TestAStandbyNeedsTheRootKey(t *testing.T) {
	serving := Config{DataDir: t.TempDir(), Endpoint: database.PostgreSQL(t), Server: records.Server{Owner: "first", Address: "first:1"}}
	openAt(t, serving)
	other := filepath.Join(t.TempDir(), "key")
	writeKey(t, other, strings.Repeat("\x00", keyBytes), 0o600)
	for reason, test := range map[string]struct{ keyFile, want string }{
		"no root key":      {"", "read encryption key"},
		"another root key": {other, "decrypt the database's keys"},
	} {
		standby := serving
		standby.DataDir, standby.KeyFile = t.TempDir(), test.keyFile
		standby.Server = records.Server{Owner: "second", Address: "second:1"}
		standby.Waiting = func(string) { t.Fatalf("%s: the server waits", reason) }
		if s, err := Open(t.Context(), standby); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, %v, want %q", reason, s, err, test.want)
		}
	}
}
