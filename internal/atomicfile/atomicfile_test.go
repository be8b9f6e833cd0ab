package atomicfile

import (
	"os"
	"path/filepath"
	"testing"
)

func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	for _, content := range []string{"first", "second"} {
		if err := Write(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		info, statErr := os.Stat(path)
		if err != nil || statErr != nil || string(got) != content || info.Mode().Perm() != 0o600 {
			t.Errorf("the file holds %q with the mode %v: %v", got, info.Mode(), err)
		}
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("the directory holds %v: %v", left, err)
	}
	// A directory in the place of the file keeps it from being replaced.
	taken := filepath.Join(t.TempDir(), "taken")
	if err := os.MkdirAll(filepath.Join(taken, "inner"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Write(taken, nil, 0o600); err == nil {
		t.Error("a directory was replaced")
	}
	if left, err := os.ReadDir(filepath.Dir(taken)); err != nil || len(left) != 1 {
		t.Errorf("a write that failed leaves %v: %v", left, err)
	}
}
