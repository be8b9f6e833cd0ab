package controller

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/hykube/hykube/internal/atomicfile"
	"github.com/hykube/hykube/internal/schema"
)

// Schemas is a directory with the schema of each installed provider, one file per Provider object. From it, the server
// can serve the provider's kinds even if it cannot install or start the provider. Otherwise, clients that cache a
// cluster would treat the missing kinds as removed.
type Schemas string

// record is the content of one file.
type record struct {
	Checksum, Source, Version string
	// Constraint is the spec.version for which the package was installed.
	Constraint string
	Schema     *schema.Provider
}

func (s Schemas) file(name string) string { return name + ".json.gz" }

// write writes a schema and replaces an earlier one.
func (s Schemas) write(name string, r record) error {
	var text bytes.Buffer
	z := gzip.NewWriter(&text)
	err := errors.Join(json.NewEncoder(z).Encode(r), z.Close(), os.MkdirAll(string(s), 0o700))
	if err == nil {
		err = atomicfile.Write(filepath.Join(string(s), s.file(name)), text.Bytes(), 0o600)
	}
	if err != nil {
		return fmt.Errorf("record schema of provider %q: %w", name, err)
	}
	return nil
}

// has reports whether a schema of the provider is recorded.
func (s Schemas) has(name string) bool {
	_, err := os.Stat(filepath.Join(string(s), s.file(name)))
	return err == nil
}

// read returns the recorded schema of the package with the checksum. The error wraps fs.ErrNotExist if there is none.
func (s Schemas) read(name, checksum string) (r record, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("read recorded schema of provider %q: %w", name, err)
		}
	}()
	f, err := os.OpenInRoot(string(s), s.file(name))
	if err != nil {
		return record{}, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return record{}, err
	}
	if err := json.NewDecoder(z).Decode(&r); err != nil {
		return record{}, err
	}
	if r.Checksum != checksum || r.Schema == nil {
		return record{}, fmt.Errorf("the record is one of %s %s, with another checksum: %w", r.Source, r.Version,
			fs.ErrNotExist)
	}
	return r, nil
}

// remove removes the schema of a provider.
func (s Schemas) remove(name string) error {
	if err := os.Remove(filepath.Join(string(s), s.file(name))); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove recorded schema of provider %q: %w", name, err)
	}
	return nil
}
