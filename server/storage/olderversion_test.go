package storage

import (
	"bytes"
	"crypto/rand"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/apiserver/pkg/storage/value/encrypt/aes"
)

// oldDatabase makes the database of an older version, which encrypted with the file's key and left ConfigMaps plain.
func oldDatabase(t *testing.T, dir, text string) (key []byte) {
	t.Helper()
	s := openAt(t, Config{DataDir: dir})
	key = make([]byte, keyBytes)
	rand.Read(key)
	if err := os.WriteFile(filepath.Join(dir, ownKeyFile), key, 0o600); err != nil {
		t.Fatal(err)
	}
	gcm, err := aes.NewHKDFExtendedNonceGCMTransformer(key)
	if err != nil {
		t.Fatal(err)
	}
	name, data := record(0)
	sealed, err := gcm.TransformToStorage(t.Context(), data, value.DefaultContext(ledgerPrefix+name))
	if err != nil {
		t.Fatal(err)
	}
	put(t, s, ledgerPrefix+name, string(firstPrefix)+string(sealed), 0)
	put(t, s, "/registry/core/configmaps/prod/plain", `{"data": "`+text+`"}`, 0)
	if _, err := s.table.db.ExecContext(t.Context(), "DELETE FROM kine WHERE name = ?", keyringKey); err != nil {
		t.Fatal(err)
	}
	withoutLedger(t, s, dir)
	return key
}

// inFiles reports whether the database's files contain text.
func inFiles(t *testing.T, dir, text string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "db", "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("database files: %v, %v", files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(data, []byte(text)) {
			return true
		}
	}
	return false
}

func TestRotationEncryptsTheRowsOfAnOlderVersion(t *testing.T) {
	dir := t.TempDir()
	const text = "a-plain-text-of-old"
	oldDatabase(t, dir, text)
	s := openAt(t, Config{DataDir: dir})
	checkRecords(t, s, 1)
	if status, err := s.KeyStatus(t.Context()); err != nil || !status.PlainRows || status.Keys[0].ID != "" || !inFiles(t, dir, text) {
		t.Fatalf("status %+v: %v", status, err)
	}
	if err := s.RotateKeys(t.Context()); err != nil {
		t.Fatal(err)
	}
	if status := finishRotation(t, s); status.PlainRows {
		t.Errorf("status %+v", status)
	}
	checkRecords(t, s, 1)
	if inFiles(t, dir, text) || rowsWith(t, s, firstPrefix) > 0 {
		t.Errorf("the text is still in the files: %v; %d rows have the first key", inFiles(t, dir, text), rowsWith(t, s, firstPrefix))
	}
	got, err := s.client.KV.Get(t.Context(), "/registry/core/configmaps/prod/plain")
	if err != nil || !isOwn(got.Kvs[0].Value) {
		t.Errorf("the ConfigMap is not encrypted: %v", err)
	}
	// From now on, a plain row is a forged one.
	put(t, s, "/registry/core/configmaps/prod/forged", `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "forged"}}`, 0)
	if _, err := s.Objects().Get(t.Context(), schema.GroupResource{Resource: "configmaps"}, "prod", "forged"); err == nil {
		t.Error("a forged row is read")
	}
}
