package backup

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/fxamacker/cbor/v2"
)

// Writer writes an archive: first all objects, then all records, then Close.
type Writer struct {
	tar    *tar.Writer
	header Header
	at     time.Time
	encode cbor.EncMode
	// part is the part that is being filled, of a table.
	part  bytes.Buffer
	table string
	rows  int64
	parts []Part
}

// NewWriter begins an archive of a snapshot that was taken at a time.
func NewWriter(w io.Writer, version string, at time.Time) (*Writer, error) {
	encode, err := cbor.CoreDetEncOptions().EncMode()
	if err != nil {
		return nil, err
	}
	to := &Writer{tar: tar.NewWriter(w), header: Header{Format, version}, at: at.UTC().Truncate(time.Second),
		encode: encode}
	return to, to.text(headerName, to.header)
}

// Object adds a row of kine's table.
func (w *Writer) Object(o Object) error { return w.row(tableObjects, o) }

// Record adds a row of the ledger.
func (w *Writer) Record(r Record) error { return w.row(tableLedger, r) }

func (w *Writer) row(table string, row any) error {
	if table != w.table || w.part.Len() >= partBytes {
		if err := w.endPart(); err != nil {
			return err
		}
		w.table = table
	}
	w.rows++
	return w.encode.NewEncoder(&w.part).Encode(row)
}

// endPart writes the part that is being filled.
func (w *Writer) endPart() error {
	if w.rows == 0 {
		return nil
	}
	sum := sha256.Sum256(w.part.Bytes())
	number := 1
	if n := len(w.parts); n > 0 && tableOf(w.parts[n-1].Name) == w.table {
		number = numberOf(w.parts[n-1].Name) + 1
	}
	p := Part{Name: partName(w.table, number), Rows: w.rows, Bytes: int64(w.part.Len()), SHA256: sum[:]}
	if err := w.entry(p.Name, w.part.Bytes()); err != nil {
		return err
	}
	w.parts = append(w.parts, p)
	w.part.Reset()
	w.rows = 0
	return nil
}

// Close ends the archive with a manifest, of which it sets the header, the time, the parts and their sums. code
// authenticates it.
func (w *Writer) Close(m Manifest, code func(manifest []byte) []byte) error {
	if err := w.endPart(); err != nil {
		return err
	}
	m.Header, m.Time, m.Parts = w.header, w.at, w.parts
	for _, p := range w.parts {
		sum := &m.Objects
		if tableOf(p.Name) == tableLedger {
			sum = &m.Ledger
		}
		sum.Rows += p.Rows
		sum.Bytes += p.Bytes
	}
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the manifest: %w", err)
	}
	if err := w.entry(manifestName, data); err != nil {
		return err
	}
	if err := w.entry(codeName, []byte(base64.StdEncoding.EncodeToString(code(data))+"\n")); err != nil {
		return err
	}
	return w.tar.Close()
}

// text adds an entry in JSON.
func (w *Writer) text(name string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return w.entry(name, append(data, '\n'))
}

func (w *Writer) entry(name string, data []byte) error {
	err := w.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(data)), Mode: 0o600,
		ModTime: w.at})
	if err == nil {
		_, err = w.tar.Write(data)
	}
	return err
}
