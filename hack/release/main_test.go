package main

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/hykube/hykube/tests/harness"
)

// testRelease returns a release of a server for another machine and of the plugin for all. Copies of a small program stand
// for the built ones. The man pages come from the built server.
func testRelease(t *testing.T, out string) *release {
	binaries, err := harness.Built()
	if err != nil {
		t.Fatal(err)
	}
	other := "arm64"
	if runtime.GOARCH == other {
		other = "amd64"
	}
	r := &release{version: "v1.2.3", out: out, log: io.Discard, targets: slices.DeleteFunc(slices.Clone(allTargets), func(t target) bool {
		return t.program == server && t.arch != other
	})}
	r.build = func(_ context.Context, t target, path string) error {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if t == (target{server, runtime.GOOS, runtime.GOARCH}) {
			return os.Symlink(binaries.Path("hykube"), path)
		}
		program, err := os.ReadFile(binaries.Path("simcloud"))
		if err != nil {
			return err
		}
		return os.WriteFile(path, program, 0o755)
	}
	return r
}

// TestRelease makes a release twice, and looks at its files.
func TestRelease(t *testing.T) {
	t.Chdir("../..")
	t.Setenv("SOURCE_DATE_EPOCH", "1790000000")
	out := t.TempDir()
	sums := ""
	for range 2 {
		if err := testRelease(t, out).run(t.Context()); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(out, "SHA256SUMS"))
		if err != nil {
			t.Fatal(err)
		}
		if sums != "" && sums != string(text) {
			t.Errorf("two releases of the same sources differ:\n%s", cmp.Diff(sums, string(text)))
		}
		sums = string(text)
	}

	t.Run("every file has its checksum", func(t *testing.T) {
		listed := map[string]string{}
		for line := range strings.Lines(sums) {
			sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
			listed[name] = sum
		}
		entries, err := os.ReadDir(out)
		if err != nil {
			t.Fatal(err)
		}
		// Seven archives, an SPDX document for each, the chart, the manifest of krew, and the checksums.
		if len(entries) != 7+7+3 || len(listed) != len(entries)-1 {
			t.Errorf("%d files and %d checksums", len(entries), len(listed))
		}
		for name, sum := range listed {
			if got, err := checksum(filepath.Join(out, name)); err != nil || got != sum {
				t.Errorf("%s: %s, %v; want %s", name, got, err, sum)
			}
		}
	})
	for _, target := range testRelease(t, out).targets {
		t.Run(strings.ReplaceAll(target.String(), "/", " "), func(t *testing.T) {
			r := testRelease(t, out)
			files := unpack(t, filepath.Join(out, r.archiveName(target)))
			want := []string{target.file(), "LICENSE", "completions/" + target.program + ".bash", "completions/" + target.program + ".zsh"}
			if target.program == server {
				want = append(want, "systemd/hykube.service", "systemd/hykube.env", "man1/hykube.1", "man1/hykube-server.1", "man1/hykube-probe.1")
			} else {
				want = append(want, "man1/kubectl-hykube.1", "man1/kubectl-hykube-plan.1")
			}
			for _, name := range want {
				if len(files[name]) == 0 {
					t.Errorf("the archive lacks %s", name)
				}
			}
			if !strings.Contains(files["LICENSE"], "GNU AFFERO GENERAL PUBLIC LICENSE") {
				t.Error("LICENSE is not the licence")
			}
			if text := files["man1/hykube-server.1"]; target.program == server && !strings.Contains(text, `data-dir\fP="~/.hykube"`) {
				t.Error("the default of --data-dir in the man page is that of one user")
			}
		})
	}
	t.Run("the chart has the version of the release", func(t *testing.T) {
		files := unpack(t, filepath.Join(out, "hykube-1.2.3.tgz"))
		if text := files["hykube/Chart.yaml"]; !strings.Contains(text, "\nversion: 1.2.3\n") || !strings.Contains(text, "\nappVersion: 1.2.3\n") {
			t.Errorf("Chart.yaml is\n%s", text)
		}
		if files["hykube/templates/statefulset.yaml"] == "" || files["hykube/ci/default-values.yaml"] != "" {
			t.Error("the chart has no templates, or has the values of tests")
		}
	})
	t.Run("the SPDX document names the modules of the program", func(t *testing.T) {
		text, err := os.ReadFile(filepath.Join(out, "kubectl-hykube_v1.2.3_darwin_arm64.tar.gz.spdx.json"))
		if err != nil {
			t.Fatal(err)
		}
		var document spdxDocument
		if err := json.Unmarshal(text, &document); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(document.DocumentNamespace, "#") {
			t.Errorf("SPDX allows no # in the namespace %s", document.DocumentNamespace)
		}
		ids, names := map[string]bool{}, map[string]bool{}
		for _, p := range document.Packages {
			if ids[p.SPDXID] {
				t.Errorf("two packages have the ID %s", p.SPDXID)
			}
			ids[p.SPDXID], names[p.Name] = true, true
		}
		for _, name := range []string{plugin, "stdlib"} {
			if !names[name] {
				t.Errorf("the document lacks %s", name)
			}
		}
		if len(document.Relationships) != len(document.Packages) {
			t.Errorf("%d packages and %d relationships", len(document.Packages), len(document.Relationships))
		}
		for _, r := range document.Relationships {
			if !ids[r.Related] {
				t.Errorf("a relationship names %s, which is no package", r.Related)
			}
		}
	})
	t.Run("krew finds the archives", func(t *testing.T) {
		text, err := os.ReadFile(filepath.Join(out, "hykube.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		var p krewPlugin
		if err := yaml.UnmarshalStrict(text, &p); err != nil {
			t.Fatal(err)
		}
		if len(p.Spec.Platforms) != 6 || p.Spec.Version != "v1.2.3" || len(p.Spec.ShortDescription) > 60 {
			t.Errorf("%d platforms, version %s, description of %d characters", len(p.Spec.Platforms), p.Spec.Version, len(p.Spec.ShortDescription))
		}
		for _, platform := range p.Spec.Platforms {
			name := filepath.Base(platform.URI)
			if sum, err := checksum(filepath.Join(out, name)); err != nil || sum != platform.SHA256 {
				t.Errorf("%s: %v", name, err)
			}
			files := unpack(t, filepath.Join(out, name))
			for _, f := range platform.Files {
				if files[f.From] == "" {
					t.Errorf("%s has no %s", name, f.From)
				}
			}
		}
	})
}

// TestRefusedReleases makes mistakes in the flags.
func TestRefusedReleases(t *testing.T) {
	for _, version := range []string{"", "1.2.3", "d4a9a66-dirty"} {
		r := &release{version: version, out: t.TempDir(), log: io.Discard}
		if err := r.run(t.Context()); err == nil || !strings.Contains(err.Error(), "semantic version") {
			t.Errorf("version %q: %v", version, err)
		}
	}
	if _, err := targetsOf("server/windows/amd64"); err == nil {
		t.Error("there is no server for Windows")
	}
	if targets, err := targetsOf("server/linux/arm64,plugin/linux/amd64"); err != nil || !slices.Equal(targets, []target{{server, "linux", "arm64"}, {plugin, "linux", "amd64"}}) {
		t.Errorf("%v, %v", targets, err)
	}
}

// TestLinkerFlags expects the flags of the Makefile.
func TestLinkerFlags(t *testing.T) {
	t.Chdir("../..")
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	flags, err := (&release{version: "v1.2.3"}).linkerFlags(allTargets[0])
	if err != nil {
		t.Fatal(err)
	}
	for word := range strings.FieldsSeq(flags) {
		name, _, _ := strings.Cut(word, "=")
		if !strings.Contains(string(makefile), name) {
			t.Errorf("the Makefile does not use %s", name)
		}
	}
	if !strings.Contains(flags, "gitVersion=v1.") {
		t.Errorf("the flags lack the version of Kubernetes: %s", flags)
	}
}

// unpack returns the files of an archive.
func unpack(t *testing.T, path string) map[string]string {
	t.Helper()
	files := map[string]string{}
	if strings.HasSuffix(path, ".zip") {
		archive, err := zip.OpenReader(path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = archive.Close() }()
		for _, f := range archive.File {
			content, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(content)
			if err != nil {
				t.Fatal(err)
			}
			files[f.Name] = string(text)
		}
		return files
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	unzipped, err := gzip.NewReader(bufio.NewReader(f))
	if err != nil {
		t.Fatal(err)
	}
	for archive := tar.NewReader(unzipped); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Uid != 0 || header.Uname != "" || !header.ModTime.Equal(time.Unix(1790000000, 0)) {
			t.Errorf("%s belongs to %q and is of %s", header.Name, header.Uname, header.ModTime)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		files[header.Name] = string(text)
	}
}
