package archive

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type entry struct {
	name    string
	mode    fs.FileMode
	content string
}

func zipOf(t *testing.T, entries ...entry) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
		mode := e.mode
		if mode == 0 {
			mode = 0o644
		}
		h.SetMode(mode)
		f, err := w.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(f, e.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return fileOf(t, b.Bytes())
}

func fileOf(t *testing.T, data []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "a.zip")
	if err := os.WriteFile(name, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestUnpack(t *testing.T) {
	dir := t.TempDir()
	z := zipOf(t,
		entry{"terraform-provider-x_v1.0.0", 0o600, "program"},
		entry{"LICENSE", 0o777, "free"},
		entry{"docs/", fs.ModeDir | 0o700, ""},
		entry{"docs/a/b.md", 0o4755, "text"},
	)
	if err := Unpack(t.Context(), z, dir, "terraform-provider-x", Limits{}); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		data, err := os.ReadFile(p)
		rel, _ := filepath.Rel(dir, p)
		got[rel] = info.Mode().String() + " " + string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"terraform-provider-x_v1.0.0": "-rwxr-xr-x program",
		"LICENSE":                     "-rw-r--r-- free",
		"docs/a/b.md":                 "-rw-r--r-- text",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unpacked (-want +got):\n%s", diff)
	}
}

func TestUnpackRefuses(t *testing.T) {
	many := make([]entry, 11)
	for i := range many {
		many[i] = entry{name: fmt.Sprint(i)}
	}
	zeros := strings.Repeat("\x00", 4<<20)
	for _, tc := range []struct {
		why    string
		zip    string
		reason string
	}{
		{"a path that climbs out", zipOf(t, entry{name: "../evil", content: "x"}), "outside of the target directory"},
		{"a path that climbs out in the middle", zipOf(t, entry{name: "a/../../evil", content: "x"}), "outside of the target directory"},
		{"an absolute path", zipOf(t, entry{name: "/tmp/evil", content: "x"}), "outside of the target directory"},
		{"a Windows path", zipOf(t, entry{name: `..\evil`, content: "x"}), "backslash or a colon"},
		{"a drive", zipOf(t, entry{name: `C:evil`, content: "x"}), "backslash or a colon"},
		{"a symbolic link", zipOf(t, entry{"link", fs.ModeSymlink | 0o777, "/etc/passwd"}), "symbolic link"},
		{"a named pipe", zipOf(t, entry{"pipe", fs.ModeNamedPipe | 0o644, ""}), "neither a file nor"},
		{"a device", zipOf(t, entry{"dev", fs.ModeDevice | 0o644, ""}), "neither a file nor"},
		{"one name twice", zipOf(t, entry{name: "a"}, entry{name: "a"}), "occurs twice"},
		{"one name in two cases", zipOf(t, entry{name: "License"}, entry{name: "LICENSE"}), "occurs twice"},
		{"a file and a directory of one name", zipOf(t, entry{name: "a"}, entry{"a/", fs.ModeDir | 0o755, ""}), "occurs twice"},
		{"a name with a newline", zipOf(t, entry{name: "a\nb"}), "no usable name"},
		{"a name with a NUL", zipOf(t, entry{name: "a\x00b"}), "no usable name"},
		{"a name in roundabout form", zipOf(t, entry{name: "a/./b"}), "shortest form"},
		{"a deep path", zipOf(t, entry{name: strings.Repeat("d/", 20) + "f"}), "too deep"},
		{"too many entries", zipOf(t, many...), "the limit is 10"},
		{"a file that is too large", zipOf(t, entry{name: "zeros", content: zeros}), "larger than"},
		{"files that are too large together", zipOf(t, entry{name: "1", content: zeros[:700<<10]}, entry{name: "2", content: zeros[:700<<10]}), "unpacks to more than"},
		{"a file that lies about its size", lying(t, zeros), ""},
		{"no zip file at all", fileOf(t, []byte("<html>not found</html>")), "not a zip file"},
		{"a truncated zip file", truncated(t), "not a zip file"},
		{"damaged content", damaged(t), "damaged"},
	} {
		t.Run(tc.why, func(t *testing.T) {
			parent := t.TempDir()
			dir := filepath.Join(parent, "target")
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			err := Unpack(t.Context(), tc.zip, dir, "terraform-provider-x", Limits{Entries: 10, Bytes: 1 << 20})
			if err == nil {
				t.Fatal("it was unpacked")
			}
			if ae, ok := errors.AsType[*Error](err); !ok || !strings.Contains(ae.Error(), tc.reason) {
				t.Errorf("error %q, want an archive.Error with %q", err, tc.reason)
			}
			if left, _ := os.ReadDir(parent); len(left) != 1 {
				t.Errorf("something was written beside the target: %v", left)
			}
		})
	}
}

// TestUnpackBomb has a hundred megabytes in a hundred kilobytes, within the size that is accepted but not within the
// ratio.
func TestUnpackBomb(t *testing.T) {
	z := zipOf(t, entry{name: "bomb", content: strings.Repeat("\x00", 100<<20)})
	err := Unpack(t.Context(), z, t.TempDir(), "x", Limits{})
	if _, ok := errors.AsType[*Error](err); !ok {
		t.Errorf("got %v, want an archive.Error", err)
	}
}

func TestUnpackEndsWithItsContext(t *testing.T) {
	z := zipOf(t, entry{name: "a", content: "x"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Unpack(ctx, z, t.TempDir(), "x", Limits{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

// lying is an archive whose directory says that a file of four megabytes has one byte.
func lying(t *testing.T, content string) string {
	data, err := os.ReadFile(zipOf(t, entry{name: "a", content: content}))
	if err != nil {
		t.Fatal(err)
	}
	i := bytes.Index(data, []byte("PK\x01\x02")) // the central directory's entry; its uncompressed size is at 24
	binary.LittleEndian.PutUint32(data[i+24:], 1)
	return fileOf(t, data)
}

func truncated(t *testing.T) string {
	data, err := os.ReadFile(zipOf(t, entry{name: "a", content: "hello"}))
	if err != nil {
		t.Fatal(err)
	}
	return fileOf(t, data[:len(data)-10])
}

func damaged(t *testing.T) string {
	data, err := os.ReadFile(zipOf(t, entry{name: "a", content: "hello"}))
	if err != nil {
		t.Fatal(err)
	}
	i := bytes.Index(data, []byte("PK\x01\x02"))
	data[i+16] ^= 0xff // its checksum
	return fileOf(t, data)
}
