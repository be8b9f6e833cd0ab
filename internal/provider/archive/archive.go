// Package archive unpacks the zip file of a provider, which may be malicious. It writes only below the target
// directory, creates only regular files and directories, and limits bytes, entries and compression ratio.
//
// It imports only the standard library. The caller verifies the digest of the archive first.
package archive

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode"
)

// Limits limits the content of an archive. A zero field means its default.
type Limits struct {
	// Bytes is the maximum unpacked size of all files; the default is 4 GiB.
	Bytes int64
	// Entries is the maximum number of files and directories; the default is 4096.
	Entries int
	// Ratio is the maximum compression ratio for content above 16 MiB; the default is 100. Executables have a ratio of
	// three to five.
	Ratio int64
	// Depth is the maximum number of nested directories; the default is 16.
	Depth int
}

// ratioFloor is the unpacked size up to which the ratio does not matter.
const ratioFloor = 16 << 20

func (l Limits) withDefaults() Limits {
	if l.Bytes == 0 {
		l.Bytes = 4 << 30
	}
	if l.Entries == 0 {
		l.Entries = 4096
	}
	if l.Ratio == 0 {
		l.Ratio = 100
	}
	if l.Depth == 0 {
		l.Depth = 16
	}
	return l
}

// Error is the error for a rejected archive.
type Error struct {
	// Entry is the name of the invalid entry; empty if the whole archive is invalid.
	Entry string
	// Reason completes "the archive is refused:".
	Reason string
}

func (e *Error) Error() string {
	s := "the archive is refused: " + e.Reason
	if e.Entry != "" {
		s = fmt.Sprintf("the archive is refused: entry %.80q %s", e.Entry, e.Reason)
	}
	return s + "; get it from its publisher again"
}

// Unpack writes the content of a zip file to an existing, empty directory. Files whose name begins with executable
// become executable, regardless of the archive. It stops when ctx ends. The caller must remove the files after an
// error.
func Unpack(ctx context.Context, zipFile, dir, executable string, limits Limits) error {
	limits = limits.withDefaults()
	f, err := os.Open(zipFile)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	r, err := zip.NewReader(f, info.Size())
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) { // check validates the names
		return &Error{Reason: "it is not a zip file (" + err.Error() + ")"}
	}
	if len(r.File) > limits.Entries {
		return &Error{Reason: fmt.Sprintf("it has %d entries, and the limit is %d", len(r.File), limits.Entries)}
	}
	budget := min(limits.Bytes, max(ratioFloor, info.Size()*limits.Ratio))
	if err := check(r.File, budget, limits.Depth); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, e := range r.File {
		n, err := write(ctx, root, e, executable, budget)
		if err != nil {
			return err
		}
		budget -= n
	}
	return nil
}

// check validates all entries before the first one is written.
func check(entries []*zip.File, budget int64, depth int) error {
	seen := make(map[string]bool, len(entries))
	var total uint64
	for _, e := range entries {
		refuse := func(format string, args ...any) error {
			return &Error{Entry: e.Name, Reason: fmt.Sprintf(format, args...)}
		}
		name := strings.TrimSuffix(e.Name, "/")
		switch {
		case name == "" || strings.ContainsFunc(name,
			func(r rune) bool { return unicode.IsControl(r) || r == unicode.ReplacementChar }):
			return refuse("has no usable name")
		case strings.ContainsAny(name, `\:`):
			return refuse("has a name with a backslash or a colon")
		case path.IsAbs(name) || !filepath.IsLocal(name):
			return refuse("has a path outside of the target directory")
		case path.Clean(name) != name:
			return refuse("has a path that is not in its shortest form")
		case strings.Count(name, "/") > depth || len(name) > 1024:
			return refuse("has a path that is too deep or too long")
		case e.Flags&1 != 0:
			return refuse("is encrypted")
		case e.Mode()&fs.ModeSymlink != 0:
			return refuse("is a symbolic link")
		case !e.Mode().IsRegular() && !e.Mode().IsDir():
			return refuse("is neither a file nor a directory")
		case e.Mode().IsDir() != strings.HasSuffix(e.Name, "/"):
			return refuse("is marked both as a file and as a directory")
		}
		// On a case-insensitive file system, the second would replace the first.
		if key := strings.ToLower(name); seen[key] {
			return refuse("occurs twice")
		} else {
			seen[key] = true
		}
		if e.UncompressedSize64 > uint64(budget) {
			return refuse("is larger than the limit of %d bytes", budget)
		}
		total += e.UncompressedSize64
		if total > uint64(budget) {
			return &Error{Reason: fmt.Sprintf("it unpacks to more than the limit of %d bytes", budget)}
		}
	}
	return nil
}

// write unpacks one entry and returns its actual size. It does not trust the size in the archive.
func write(ctx context.Context, root *os.Root, e *zip.File, executable string, budget int64) (int64, error) {
	name := filepath.FromSlash(strings.TrimSuffix(e.Name, "/"))
	if e.Mode().IsDir() {
		return 0, root.MkdirAll(name, 0o755)
	}
	if dir := filepath.Dir(name); dir != "." {
		if err := root.MkdirAll(dir, 0o755); err != nil {
			return 0, err
		}
	}
	mode := fs.FileMode(0o644)
	if strings.HasPrefix(filepath.Base(name), executable) {
		mode = 0o755
	}
	in, err := e.Open()
	if err != nil {
		return 0, &Error{Entry: e.Name, Reason: "can't be read (" + err.Error() + ")"}
	}
	defer in.Close()
	out, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return 0, err
	}
	defer out.Close()
	if err := out.Chmod(mode); err != nil { // regardless of the umask
		return 0, err
	}
	n, err := io.Copy(out, io.LimitReader(&reader{ctx, in}, budget+1))
	switch {
	case n > budget:
		return 0, &Error{Entry: e.Name, Reason: "unpacks to more than the limit"}
	case ctx.Err() != nil:
		return 0, context.Cause(ctx)
	case errors.Is(err, zip.ErrChecksum), errors.Is(err, zip.ErrFormat), errors.Is(err, io.ErrUnexpectedEOF):
		return 0, &Error{Entry: e.Name, Reason: "is damaged (" + err.Error() + ")"}
	case err != nil:
		return 0, err
	}
	return n, out.Close()
}

// reader fails after its context has ended.
type reader struct {
	ctx context.Context
	r   io.Reader
}

func (r *reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}
