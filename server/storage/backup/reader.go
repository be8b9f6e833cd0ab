package backup

import (
	"archive/tar"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/fxamacker/cbor/v2"
)

// partName returns the name of a part; tableOf and numberOf take it apart.
func partName(table string, number int) string { return fmt.Sprintf("%s/%06d.cbor", table, number) }

func tableOf(part string) string { table, _, _ := strings.Cut(part, "/"); return table }

func numberOf(part string) int {
	_, rest, _ := strings.Cut(part, "/")
	n, _ := strconv.Atoi(strings.TrimSuffix(rest, ".cbor"))
	return n
}

// Checked is an archive whose parts are those of its manifest.
type Checked struct {
	Manifest
	manifest, code []byte
}

// Authentic returns an error unless code returns the code of the archive. Without that, everyone may have written the
// manifest.
func (c *Checked) Authentic(code func(manifest []byte) []byte) error {
	if !hmac.Equal(c.code, code(c.manifest)) {
		return damaged("the manifest was not written with the keys of the installation")
	}
	return nil
}

// Check reads an archive to its end. It returns an error that wraps ErrDamaged if a part is not the one of the
// manifest, or another error if a newer version wrote the archive.
func Check(r io.Reader) (*Checked, error) {
	c, err := newChecker(r)
	if err != nil {
		return nil, err
	}
	for {
		entry, err := c.next()
		switch {
		case err != nil:
			return nil, err
		case entry.Name == manifestName:
			return c.end(entry)
		}
		sum := sha256.New()
		if _, err := io.Copy(sum, c.tar); err != nil {
			return nil, c.failed(err)
		}
		c.parts = append(c.parts, Part{Name: entry.Name, Bytes: entry.Size, SHA256: sum.Sum(nil)})
	}
}

// checker reads an archive.
type checker struct {
	tar    *tar.Reader
	rest   io.Reader
	header Header
	parts  []Part
}

// newChecker reads the header.
func newChecker(r io.Reader) (*checker, error) {
	c := &checker{tar: tar.NewReader(r), rest: r}
	entry, err := c.tar.Next()
	if err == nil && entry.Name != headerName {
		err = tar.ErrHeader
	}
	if errors.Is(err, tar.ErrHeader) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, fmt.Errorf("this is no backup of hykube: %w", err)
	}
	if err != nil {
		return nil, err
	}
	data, err := c.text(entry)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &c.header); err != nil {
		return nil, damaged("its header: %v", err)
	}
	if c.header.Format > Format {
		return nil, fmt.Errorf("a newer version of hykube (%s) wrote the backup (format %d, this version reads %d); use that version",
			c.header.Version, c.header.Format, Format)
	}
	return c, nil
}

func (c *checker) next() (*tar.Header, error) {
	entry, err := c.tar.Next()
	return entry, c.failed(err)
}

// failed says that an archive ends too early.
func (c *checker) failed(err error) error {
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return damaged("it ends after %d parts, before its manifest", len(c.parts))
	case errors.Is(err, tar.ErrHeader):
		return damaged("after %d parts: %v", len(c.parts), err)
	}
	return err
}

// text reads a small entry.
func (c *checker) text(entry *tar.Header) ([]byte, error) {
	if entry.Size > maxTextBytes {
		return nil, damaged("%q has %d bytes", entry.Name, entry.Size)
	}
	data, err := io.ReadAll(c.tar)
	return data, c.failed(err)
}

// end reads the manifest and its code, and compares the parts.
func (c *checker) end(entry *tar.Header) (_ *Checked, err error) {
	out := new(Checked)
	if out.manifest, err = c.text(entry); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(out.manifest, &out.Manifest); err != nil {
		return nil, damaged("its manifest: %v", err)
	}
	if entry, err = c.next(); err != nil {
		return nil, err
	}
	text, err := c.text(entry)
	if err != nil {
		return nil, err
	}
	if out.code, err = base64.StdEncoding.DecodeString(strings.TrimSpace(string(text))); err != nil ||
		entry.Name != codeName {
		return nil, damaged("the manifest has no code")
	}
	if _, err := c.tar.Next(); !errors.Is(err, io.EOF) {
		return nil, damaged("it has more after its manifest")
	}
	if _, err := io.Copy(io.Discard, c.rest); err != nil { // to the end of a stream that is authenticated as a whole
		return nil, err
	}
	return out, out.compare(c)
}

// compare compares the parts that were read with those of the manifest.
func (c *Checked) compare(read *checker) error {
	if c.Header != read.header {
		return damaged("its header is not that of the manifest")
	}
	if len(c.Parts) != len(read.parts) {
		return damaged("it has %d parts, and the manifest names %d", len(read.parts), len(c.Parts))
	}
	for i, p := range read.parts {
		if want := c.Parts[i]; p.Name != want.Name || p.Bytes != want.Bytes || !bytes.Equal(p.SHA256, want.SHA256) {
			return damaged("part %q is not the one of the manifest", p.Name)
		}
	}
	return nil
}

// Rows calls object and record with the rows of a checked archive. It compares each part again, since the file may have
// changed.
func (c *Checked) Rows(r io.Reader, object func(Object) error, record func(Record) error) error {
	from, err := newChecker(r)
	if err != nil {
		return err
	}
	for _, p := range c.Parts {
		entry, err := from.next()
		if err != nil {
			return err
		}
		if entry.Name != p.Name || entry.Size != p.Bytes || entry.Size > maxPartBytes {
			return damaged("part %q is not the one of the manifest", entry.Name)
		}
		data := make([]byte, entry.Size)
		if _, err := io.ReadFull(from.tar, data); err != nil {
			return from.failed(err)
		}
		if sum := sha256.Sum256(data); !bytes.Equal(sum[:], p.SHA256) {
			return damaged("part %q is not the one of the manifest", p.Name)
		}
		if tableOf(p.Name) == tableObjects {
			err = rows(p, data, object)
		} else {
			err = rows(p, data, record)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// rows calls each with the rows of a part.
func rows[T any](p Part, data []byte, each func(T) error) error {
	decode := cbor.NewDecoder(bytes.NewReader(data))
	for range p.Rows {
		var row T
		if err := decode.Decode(&row); err != nil {
			return damaged("a row of part %q: %v", p.Name, err)
		}
		if err := each(row); err != nil {
			return err
		}
	}
	if decode.NumBytesRead() != len(data) {
		return damaged("part %q has more rows than the manifest says", p.Name)
	}
	return nil
}
