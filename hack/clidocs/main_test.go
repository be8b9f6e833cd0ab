package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The pages in docs/cli are what the commands say now.
func TestPagesAreFresh(t *testing.T) {
	dir := t.TempDir()
	if err := generate(dir); err != nil {
		t.Fatal(err)
	}
	got, want := read(t, dir), read(t, "../../docs/cli")
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("docs/cli is not what `go run ./hack/clidocs docs/cli` writes (-docs +now):\n%s", d)
	}
}

func read(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "kubectl_hykube*.md"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no pages in %s: %v", dir, err)
	}
	out := map[string]string{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		out[filepath.Base(f)] = string(b)
	}
	return out
}
