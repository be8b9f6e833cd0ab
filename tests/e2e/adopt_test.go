package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hykube/hykube/tests/harness/machine"
)

// TestAdopt types the commands of docs/adopt.md in a copy of examples/adopt, with Terraform and real providers: a directory with its
// state becomes a Module, which Hykube changes and gives back. Terraform finds no changes at the end.
func TestAdopt(t *testing.T) {
	t.Parallel()
	machine.Terraform.Need(t)
	dir, out := t.TempDir(), filepath.Join(t.TempDir(), "out")
	// Providers run as other users. They may pass through this directory to the one of the file.
	if err := os.Chmod(filepath.Dir(filepath.Dir(out)), 0o711); err != nil {
		t.Fatal(err)
	}
	linkBinaries(t, dir)
	here := strings.NewReplacer("6443", freePort(t), "8642", freePort(t), "/tmp/hykube-adopt", out)
	copyExample(t, "../../examples/adopt", filepath.Join(dir, "examples", "adopt"), here)
	if ran := typePage(t, "../../docs/adopt.md", dir, dir, here); ran < 20 {
		t.Errorf("the page has only %d commands", ran)
	}
}

// copyExample copies the files of a folder, with the replacements in their contents.
func copyExample(t *testing.T, from, to string, here *strings.Replacer) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(from), ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir():
			return os.MkdirAll(filepath.Join(to, name), 0o755)
		}
		content, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, name), []byte(here.Replace(string(content))), 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
}
