package provider

import (
	"fmt"
	"path/filepath"

	"golang.org/x/mod/sumdb/dirhash"
)

// Package is one installed version of a provider.
type Package struct {
	Source  Source
	Version string
	// Executable is the absolute path of the plugin.
	Executable string
	// Checksum is Terraform's h1 hash of the executable's directory, computed at the installation.
	Checksum string
}

// String returns the package's name for messages.
func (p Package) String() string { return p.Source.String() + " " + p.Version }

func (p Package) dir() string { return filepath.Dir(p.Executable) }

// Verify returns a *ChecksumError if the package's files changed after the installation.
func (p Package) Verify() error {
	got, err := hashDir(p.dir())
	if err != nil {
		return fmt.Errorf("verify provider %q: %w; install it again", p, err)
	}
	if got != p.Checksum {
		return &ChecksumError{What: fmt.Sprintf("provider %q in %s", p, p.dir()), Want: p.Checksum, Got: got,
			Remedy: "find out who changed it, then remove that directory, so that the server installs it again"}
	}
	return nil
}

// hashDir returns the h1 hash of Terraform's lock file.
func hashDir(dir string) (string, error) { return dirhash.HashDir(dir, "", dirhash.Hash1) }
