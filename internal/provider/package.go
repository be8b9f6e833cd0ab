package provider

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/mod/sumdb/dirhash"

	"github.com/hykube/hykube/internal/provider/contain"
)

// Package is one installed version of a provider.
type Package struct {
	Source  Source
	Version string
	// Executable is the absolute path of the plugin.
	Executable string
	// Checksum is Terraform's h1 hash of the executable's directory, computed at the installation.
	Checksum string
	// Verification has the results of the verification.
	Verification Verification
	// Grants are the grants of the Provider object.
	Grants contain.Grants
}

// String returns the package's name for messages.
func (p Package) String() string { return p.Source.String() + " " + p.Version }

func (p Package) dir() string { return filepath.Dir(p.Executable) }

// Verify returns a *ChecksumError if the package's files changed after the installation.
func (p Package) Verify() error {
	f, err := p.open()
	if err != nil {
		return err
	}
	return f.Close()
}

// open verifies a package and returns its open executable. The file is the verified one, even if another file later
// replaces it.
func (p Package) open() (*os.File, error) {
	f, err := p.tryOpen()
	if _, ok := errors.AsType[*ChecksumError](err); err != nil && !ok {
		return nil, fmt.Errorf("verify provider %q: %w; install it again", p, err)
	}
	return f, err
}

func (p Package) tryOpen() (*os.File, error) {
	exe, err := os.Open(p.Executable)
	if err != nil {
		return nil, err
	}
	got, err := p.hash(exe)
	if err == nil && got != p.Checksum {
		err = p.changed(got)
	}
	if err != nil {
		return nil, errors.Join(err, exe.Close())
	}
	return exe, nil
}

// hash returns the result of hashDir for the package. It reads the executable from exe.
func (p Package) hash(exe *os.File) (string, error) {
	files, err := dirhash.DirFiles(p.dir(), "")
	if err != nil {
		return "", err
	}
	return dirhash.Hash1(files, func(name string) (io.ReadCloser, error) {
		if name == filepath.Base(p.Executable) {
			info, err := exe.Stat()
			if err != nil {
				return nil, err
			}
			return io.NopCloser(io.NewSectionReader(exe, 0, info.Size())), nil
		}
		return os.Open(filepath.Join(p.dir(), name))
	})
}

func (p Package) changed(got string) error {
	return &ChecksumError{What: fmt.Sprintf("provider %q in %s", p, p.dir()), Want: p.Checksum, Got: got,
		Remedy: "find out who changed it, then remove that directory to have it installed again"}
}

// hashDir returns the h1 hash of Terraform's lock file.
func hashDir(dir string) (string, error) { return dirhash.HashDir(dir, "", dirhash.Hash1) }
