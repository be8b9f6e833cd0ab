// Package archive unpacks the zip file of a provider, which may be hostile. It writes only below the target directory,
// creates only plain files and directories, and limits bytes, entries and compression ratio.
//
// It imports the standard library alone. The caller verifies the digest of the archive first.
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

// Limits bounds what an archive may hold. The zero value of a field means its default.
type Limits struct {
	// Bytes is the size of all files together, unpacked; 4 GiB by default.
	Bytes int64
	// Entries is the number of files and directories; 4096 by default.
	Entries int
	// Ratio is how many times larger than the archive its content may be, once that is above a few megabytes; 100 by default.
	// An executable shrinks to a third or a fifth.
	Ratio int64
	// Depth is how many directories a file may lie in; 16 by default.
	Depth int
}

// ratioFloor is the unpacked size below which the ratio is of no interest.
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

// Error says why an archive is refused.
type Error struct {
	// Entry is the name of the entry at fault; empty when it is the archive as a whole.
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

// Unpack writes the content of a zip file into an existing, empty directory. Files whose name starts with executable become
// executable, whatever the archive says. It stops when ctx ends, and leaves what it has written to the caller to remove.
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
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) { // names are looked at below
		return &Error{Reason: "it is not a zip file (" + err.Error() + ")"}
	}
	if len(r.File) > limits.Entries {
		return &Error{Reason: fmt.Sprintf("it holds %d entries, more than %d", len(r.File), limits.Entries)}
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

// check looks at all entries before the first is written.
func check(entries []*zip.File, budget int64, depth int) error {
	seen := make(map[string]bool, len(entries))
	var total uint64
	for _, e := range entries {
		refuse := func(format string, args ...any) error {
			return &Error{Entry: e.Name, Reason: fmt.Sprintf(format, args...)}
		}
		name := strings.TrimSuffix(e.Name, "/")
		switch {
		case name == "" || strings.ContainsFunc(name, func(r rune) bool { return unicode.IsControl(r) || r == unicode.ReplacementChar }):
			return refuse("has no usable name")
		case strings.ContainsAny(name, `\:`):
			return refuse("has a name that means something else on another system")
		case path.IsAbs(name) || !filepath.IsLocal(name):
			return refuse("leads out of the directory")
		case path.Clean(name) != name:
			return refuse("has a name that is not in its plain form")
		case strings.Count(name, "/") > depth || len(name) > 1024:
			return refuse("lies too deep")
		case e.Flags&1 != 0:
			return refuse("is encrypted")
		case e.Mode()&fs.ModeSymlink != 0:
			return refuse("is a symbolic link")
		case !e.Mode().IsRegular() && !e.Mode().IsDir():
			return refuse("is neither a file nor a directory")
		case e.Mode().IsDir() != strings.HasSuffix(e.Name, "/"):
			return refuse("is a directory by one mark and a file by another")
		}
		// On a file system that ignores case, the second would replace the first.
		if key := strings.ToLower(name); seen[key] {
			return refuse("is there twice")
		} else {
			seen[key] = true
		}
		if e.UncompressedSize64 > uint64(budget) {
			return refuse("is larger than %d bytes, the most that is accepted", budget)
		}
		total += e.UncompressedSize64
		if total > uint64(budget) {
			return &Error{Reason: fmt.Sprintf("it unpacks to more than %d bytes, the most that is accepted", budget)}
		}
	}
	return nil
}

// write unpacks one entry and returns its size. What the archive says of a size is not believed.
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
	if err := out.Chmod(mode); err != nil { // whatever the umask
		return 0, err
	}
	n, err := io.Copy(out, io.LimitReader(&reader{ctx, in}, budget+1))
	switch {
	case n > budget:
		return 0, &Error{Entry: e.Name, Reason: "unpacks to more than the most that is accepted"}
	case ctx.Err() != nil:
		return 0, context.Cause(ctx)
	case errors.Is(err, zip.ErrChecksum), errors.Is(err, zip.ErrFormat), errors.Is(err, io.ErrUnexpectedEOF):
		return 0, &Error{Entry: e.Name, Reason: "is damaged (" + err.Error() + ")"}
	case err != nil:
		return 0, err
	}
	return n, out.Close()
}

// reader ends with its context.
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
