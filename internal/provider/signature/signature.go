// Package signature verifies the OpenPGP signatures of publishers of providers. A trusted key is an ASCII-armored
// public key, or the fingerprint of a key that the registry names.
//
// It imports an OpenPGP library and knows neither registries nor packages.
package signature

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	pgperrors "github.com/ProtonMail/go-crypto/openpgp/errors"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

// Problem is the kind of an Error.
type Problem int

const (
	// Unsigned: there is no signature.
	Unsigned Problem = iota
	// UnknownKey: the signature is by another key.
	UnknownKey
	// BadSignature: the signature does not belong to the document, or its key was not valid when it signed.
	BadSignature
)

// Error is the error for a document whose signature is missing or not acceptable.
type Error struct {
	Problem Problem
	// Reason is a clause that describes the problem.
	Reason string
}

func (e *Error) Error() string { return e.Reason }

// Signer is the key that made a signature.
type Signer struct {
	// KeyID has 16 hexadecimal digits.
	KeyID string
	// Name is the user ID of the key, such as "HashiCorp Security <security@hashicorp.com>"; may be empty.
	Name string
}

// String returns the signer for messages.
func (s Signer) String() string {
	if s.Name == "" {
		return "key " + s.KeyID
	}
	return fmt.Sprintf("key %s (%s)", s.KeyID, s.Name)
}

// Keys are trusted keys. The zero value trusts no key.
type Keys struct {
	keys         openpgp.EntityList
	fingerprints [][]byte
}

// Empty reports whether there are no trusted keys.
func (k Keys) Empty() bool { return len(k.keys)+len(k.fingerprints) == 0 }

const (
	armorStart   = "-----BEGIN PGP "
	publicArmor  = "-----BEGIN PGP PUBLIC KEY BLOCK-----"
	privateArmor = "-----BEGIN PGP PRIVATE KEY BLOCK-----"
)

// ParseKeys parses trusted keys. It returns an error for each one that is neither a public key nor a fingerprint.
func ParseKeys(texts []string) (Keys, error) {
	var k Keys
	for i, text := range texts {
		if err := k.add(text); err != nil {
			return Keys{}, fmt.Errorf("signing key %d: %w", i+1, err)
		}
	}
	return k, nil
}

// CheckKey returns an error if the text is neither an armored public key nor a fingerprint. The error never repeats the
// text, which may be a private key.
func CheckKey(text string) error { return new(Keys).add(text) }

func (k *Keys) add(text string) error {
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, armorStart) {
		fingerprint, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
		if err != nil || len(fingerprint) != 20 && len(fingerprint) != 32 {
			return errors.New(`must be a public key that begins with "` + publicArmor +
				`", or the 40 or 64 hexadecimal digits of a key's fingerprint`)
		}
		k.fingerprints = append(k.fingerprints, fingerprint)
		return nil
	}
	if strings.Contains(text, privateArmor) {
		return errors.New("must not be a private key; export the public one, and treat this private key as disclosed")
	}
	keys, err := openpgp.ReadArmoredKeyRing(strings.NewReader(text))
	if err != nil {
		return fmt.Errorf("is not a usable public key: %w", err)
	}
	k.keys = append(k.keys, keys...)
	return nil
}

// Verify verifies a detached signature of a document with the trusted keys. offered are armored public keys from which
// fingerprints select. It returns an *Error if the signature is not acceptable.
func (k Keys) Verify(offered []string, document, sig []byte) (Signer, error) {
	keys := slices.Clone(k.keys)
	if len(k.fingerprints) > 0 {
		for _, e := range read(offered) {
			if slices.ContainsFunc(k.fingerprints,
				func(f []byte) bool { return bytes.Equal(f, e.PrimaryKey.Fingerprint) }) {
				keys = append(keys, e)
			}
		}
	}
	return verify(keys, document, sig)
}

// VerifyOffered verifies a detached signature of a document with any of the offered keys.
func VerifyOffered(offered []string, document, sig []byte) (Signer, error) {
	return verify(read(offered), document, sig)
}

// read returns the keys that can be read. A registry may name keys of kinds that this library does not support.
func read(armored []string) openpgp.EntityList {
	var out openpgp.EntityList
	for _, text := range armored {
		if keys, err := openpgp.ReadArmoredKeyRing(strings.NewReader(text)); err == nil {
			out = append(out, keys...)
		}
	}
	return out
}

func verify(keys openpgp.EntityList, document, sig []byte) (Signer, error) {
	if len(sig) == 0 {
		return Signer{}, &Error{Unsigned, "it has no signature"}
	}
	check := func(config *packet.Config) (*packet.Signature, *openpgp.Entity, error) {
		return openpgp.VerifyDetachedSignature(keys, bytes.NewReader(document), bytes.NewReader(sig), config)
	}
	made, signer, err := check(nil)
	if errors.Is(err, pgperrors.ErrKeyExpired) && made != nil {
		// Old versions stay installable: the key must have been valid when it signed.
		made, signer, err = check(&packet.Config{Time: func() time.Time { return made.CreationTime }})
	}
	switch {
	case errors.Is(err, pgperrors.ErrUnknownIssuer):
		return Signer{}, &Error{UnknownKey, "its list of checksums is signed by none of the trusted keys"}
	case errors.Is(err, pgperrors.ErrKeyExpired):
		return Signer{}, &Error{BadSignature, "its list of checksums was signed with " + signerOf(signer).String() +
			" after that key expired"}
	case errors.Is(err, pgperrors.ErrKeyRevoked):
		return Signer{}, &Error{BadSignature, "its list of checksums is signed with " + signerOf(signer).String() +
			", which was revoked"}
	case err != nil:
		return Signer{}, &Error{BadSignature, "the signature of its list of checksums is invalid: " + err.Error()}
	}
	return signerOf(signer), nil
}

func signerOf(e *openpgp.Entity) Signer {
	if e == nil {
		return Signer{}
	}
	s := Signer{KeyID: e.PrimaryKey.KeyIdString()}
	if id := e.PrimaryIdentity(); id != nil {
		s.Name = id.Name
	}
	return s
}
