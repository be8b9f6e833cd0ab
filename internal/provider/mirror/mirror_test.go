package mirror

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func write(t *testing.T, path string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("content of "+filepath.Base(path)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPackages(t *testing.T) {
	dir := t.TempDir()
	base := filepath.Join(dir, "h", "n", "t")
	zip := write(t, filepath.Join(base, "terraform-provider-t_1.0.0_linux_amd64.zip"))
	write(t, filepath.Join(base, "terraform-provider-other_1.0.0_linux_amd64.zip"))
	write(t, filepath.Join(base, "terraform-provider-t_1.0.0.zip"))
	write(t, filepath.Join(base, "1.1.0", "linux_arm64", "terraform-provider-t"))
	write(t, filepath.Join(base, "1.1.0", ".incoming-1", "x"))
	write(t, filepath.Join(base, "1.1.0", "linux_arm64.json"))
	if err := os.Symlink("/no/such/place", filepath.Join(base, "dangling")); err != nil {
		t.Fatal(err)
	}
	got, err := Packages(dir, "h", "n", "t")
	want := []Package{
		{Version: "1.1.0", Platform: "linux_arm64", Path: filepath.Join(base, "1.1.0", "linux_arm64")},
		{Version: "1.0.0", Platform: "linux_amd64", Path: zip, Packed: true},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("packages (-want +got), %v:\n%s", err, diff)
	}
	if got, err := Packages(dir, "h", "n", "nothing"); got != nil || err != nil {
		t.Errorf("an unknown provider: %v, %v", got, err)
	}
}

// TestCopyFollowsLinks copies a package that is built of links, as some package managers build them, into plain files.
func TestCopyFollowsLinks(t *testing.T) {
	store, from, to := t.TempDir(), t.TempDir(), t.TempDir()
	program := write(t, filepath.Join(store, "program"))
	write(t, filepath.Join(from, "docs", "README"))
	if err := os.Symlink(program, filepath.Join(from, "terraform-provider-t")); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(store, "linux_amd64")
	if err := os.Symlink(from, link); err != nil {
		t.Fatal(err)
	}
	if err := Copy(link, to); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(filepath.Join(to, "terraform-provider-t"))
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm() != 0o755 {
		t.Errorf("plugin = %v, %v; want a plain executable file", info.Mode(), err)
	}
	if data, err := os.ReadFile(filepath.Join(to, "docs", "README")); err != nil || string(data) != "content of README" {
		t.Errorf("README = %q, %v", data, err)
	}
	if err := os.Symlink("/dev/zero", filepath.Join(from, "endless")); err != nil {
		t.Fatal(err)
	}
	if err := Copy(from, t.TempDir()); err == nil || !strings.Contains(err.Error(), "not a plain file") {
		t.Errorf("a device: %v", err)
	}
}

func TestExecutable(t *testing.T) {
	for _, tc := range []struct {
		files []string
		want  string
	}{
		{[]string{"LICENSE", "terraform-provider-t"}, "terraform-provider-t"},
		{[]string{"terraform-provider-t_v1.0.0_x5"}, "terraform-provider-t_v1.0.0_x5"},
		{[]string{"terraform-provider-t.exe"}, "terraform-provider-t.exe"},
		{[]string{"terraform-provider-tt", "t"}, ""},
		{nil, ""},
	} {
		dir := t.TempDir()
		for _, f := range tc.files {
			write(t, filepath.Join(dir, f))
		}
		got, err := Executable(dir, "t")
		if (err == nil) != (tc.want != "") || err == nil && filepath.Base(got) != tc.want {
			t.Errorf("Executable of %v = %q, %v; want %q", slices.Clone(tc.files), got, err, tc.want)
		}
	}
}
