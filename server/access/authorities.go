package access

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// pairs are the names of the files of both authorities.
var pairs = []string{"server-ca", "client-ca"}

// authorityPEM is a certificate and its key.
type authorityPEM struct {
	Certificate []byte `json:"certificate"`
	Key         []byte `json:"key"`
}

// Authorities returns both authorities in a directory as JSON, with their keys.
func Authorities(dir string) ([]byte, error) {
	all := map[string]authorityPEM{}
	for _, name := range pairs {
		certificate, err := os.ReadFile(filepath.Join(dir, name+".crt"))
		if err != nil {
			return nil, fmt.Errorf("read certificate authority: %w", err)
		}
		key, err := os.ReadFile(filepath.Join(dir, name+".key"))
		if err != nil {
			return nil, fmt.Errorf("read certificate authority: %w", err)
		}
		all[name] = authorityPEM{certificate, key}
	}
	return json.Marshal(all)
}

// UseAuthorities writes what Authorities returned into a directory. It returns false if the directory has them.
func UseAuthorities(dir string, authorities []byte) (changed bool, err error) {
	if own, err := Authorities(dir); err == nil && bytes.Equal(own, authorities) {
		return false, nil
	}
	var all map[string]authorityPEM
	if err := json.Unmarshal(authorities, &all); err != nil {
		return false, fmt.Errorf("decode certificate authorities: %w", err)
	}
	for _, name := range pairs {
		if _, err := parsePair(all[name].Certificate, all[name].Key); err != nil {
			return false, fmt.Errorf("use the certificate authority %q of the database: %w", name, err)
		}
		if err := writePair(filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key"), all[name].Certificate,
			all[name].Key); err != nil {
			return false, fmt.Errorf("write certificate authority: %w", err)
		}
	}
	return true, nil
}

// AuthorityRemoved reports whether an administrator has removed an authority from a directory, which a server uses
// already. The server then makes another one; see OpenCertificates.
func AuthorityRemoved(dir string) bool {
	absent := func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return errors.Is(err, fs.ErrNotExist)
	}
	return !absent("serving.crt") && (absent("server-ca.crt") || absent("client-ca.crt"))
}
