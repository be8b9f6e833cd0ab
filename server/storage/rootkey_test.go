package storage

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheRootKeyMovesToAnotherFile(t *testing.T) {
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "key")
	s := openAt(t, Config{DataDir: dir})
	fill(t, s, 2)
	closeStore(t, s)
	line := func() string {
		key := make([]byte, keyBytes)
		rand.Read(key)
		return base64.StdEncoding.EncodeToString(key) + "\n"
	}
	first, second := line(), line()
	writeKey(t, file, first, 0o600)
	s = openAt(t, Config{DataDir: dir, KeyFile: file})
	if err := s.RotateKeys(t.Context()); err != nil {
		t.Fatal(err)
	}
	finishRotation(t, s)
	if err := os.Remove(filepath.Join(dir, ownKeyFile)); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	s = openAt(t, Config{DataDir: dir, KeyFile: file})
	checkRecords(t, s, 2)
	// A new root key, while the server runs: it becomes the first line of the file.
	writeKey(t, file, second+first, 0o600)
	if err := s.RotateKeys(t.Context()); err != nil {
		t.Fatal(err)
	}
	finishRotation(t, s)
	closeStore(t, s)
	writeKey(t, file, second, 0o600)
	s = openAt(t, Config{DataDir: dir, KeyFile: file})
	checkRecords(t, s, 2)
	if _, err := os.Stat(filepath.Join(dir, ownKeyFile)); !os.IsNotExist(err) {
		t.Errorf("the data directory has a key: %v", err)
	}
}

// TestAServerDoesNotStartWithoutItsKey expects a refusal that names the remedy, and a database that stays as it is.
func TestAServerDoesNotStartWithoutItsKey(t *testing.T) {
	other := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("k"), keyBytes))
	for name, test := range map[string]struct {
		prepare func(t *testing.T, own string, c *Config)
		want    string
	}{
		"lost":     {func(t *testing.T, own string, _ *Config) { remove(t, own) }, "file does not exist, and the server cannot read the database without it"},
		"another":  {func(t *testing.T, own string, _ *Config) { writeKey(t, own, other, 0o600) }, "give the server the key file"},
		"short":    {func(t *testing.T, own string, _ *Config) { writeKey(t, own, "\x00\x01", 0o600) }, "it has 2 bytes instead of 32"},
		"readable": {func(t *testing.T, own string, _ *Config) { chmod(t, own, 0o644) }, "every user of this machine may open it (mode 0644): chmod 600"},
		"missing file of the flag": {func(t *testing.T, own string, c *Config) {
			remove(t, own)
			c.KeyFile = own + ".other"
		}, "it does not exist; restore it"},
		"short file of the flag": {func(t *testing.T, own string, c *Config) {
			remove(t, own)
			c.KeyFile = own + ".other"
			writeKey(t, c.KeyFile, "c2hvcnQ=", 0o600)
		}, "the key in line 1 has 5 bytes instead of 32"},
		"another file of the flag": {func(t *testing.T, own string, c *Config) {
			remove(t, own)
			c.KeyFile = own + ".other"
			writeKey(t, c.KeyFile, other, 0o600)
		}, "give the server the key file"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			own := filepath.Join(dir, ownKeyFile)
			s := openAt(t, Config{DataDir: dir})
			fill(t, s, 1)
			closeStore(t, s)
			kept, err := os.ReadFile(own)
			if err != nil {
				t.Fatal(err)
			}
			c := Config{DataDir: dir}
			test.prepare(t, own, &c)
			if s, err := Open(t.Context(), c); err == nil {
				closeStore(t, s)
				t.Fatal("the server starts")
			} else if !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error that says %q", err, test.want)
			}
			writeKey(t, own, string(kept), 0o600)
			checkRecords(t, openAt(t, Config{DataDir: dir}), 1)
		})
	}
}

// TestAServerDoesNotStartWithAnotherKeyring gives a database the keyring of another one, which the same root key encrypts.
func TestAServerDoesNotStartWithAnotherKeyring(t *testing.T) {
	c := Config{DataDir: t.TempDir(), KeyFile: filepath.Join(t.TempDir(), "key")}
	writeKey(t, c.KeyFile, base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("k"), keyBytes)), 0o600)
	other, _, err := openAt(t, Config{DataDir: t.TempDir(), KeyFile: c.KeyFile}).table.get(t.Context(), keyringKey)
	if err != nil {
		t.Fatal(err)
	}
	s := openAt(t, c)
	fill(t, s, 1)
	if _, err := s.table.db.ExecContext(t.Context(), "UPDATE kine SET value = ? WHERE name = ?", other, keyringKey); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	if s, err := Open(t.Context(), c); err == nil || !strings.Contains(err.Error(), "needs the data key") {
		t.Errorf("got %v, %v, want an error about the data key", s, err)
	}
}

// TestALostKeyringIsNotReplaced removes the keyring from a database with an object or a record, with and without the key
// file. A new keyring could not decrypt what is there.
func TestALostKeyringIsNotReplaced(t *testing.T) {
	for name, write := range map[string]func(*Store){
		"an object": func(s *Store) { put(t, s, objectPrefix+"/core/configmaps/prod/settings", "encrypted", 0) },
		"a record":  func(s *Store) { fill(t, s, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := openAt(t, Config{DataDir: dir})
			write(s)
			if _, err := s.table.db.ExecContext(t.Context(), "DELETE FROM kine WHERE name = ?", keyringKey); err != nil {
				t.Fatal(err)
			}
			closeStore(t, s)
			if s, err := Open(t.Context(), Config{DataDir: dir}); !errors.Is(err, errNoKeyring) {
				t.Errorf("with the key file: %v, %v", s, err)
			}
			own := filepath.Join(dir, ownKeyFile)
			remove(t, own)
			if s, err := Open(t.Context(), Config{DataDir: dir}); !errors.Is(err, errNoKeyring) {
				t.Errorf("without the key file: %v, %v", s, err)
			}
			if _, err := os.Stat(own); !os.IsNotExist(err) {
				t.Errorf("a new key is there: %v", err)
			}
		})
	}
}
