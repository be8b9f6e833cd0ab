package registry

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/ProtonMail/go-crypto/openpgp"
	pgperrors "github.com/ProtonMail/go-crypto/openpgp/errors"
)

// Origin is a provider in the registry of its address.
type Origin struct {
	client   *Client
	host     string
	base     *url.URL // of the provider in the registry's API
	provider string
}

// Version is a version in a registry's list.
type Version struct {
	Version string `json:"version"`
	// Protocols lists the provider's protocol versions, such as "5.0".
	Protocols []string `json:"protocols"`
	Platforms []struct {
		OS   string `json:"os"`
		Arch string `json:"arch"`
	} `json:"platforms"`
}

// SignatureError is the error if the publisher's signature of a package's checksums is invalid.
type SignatureError struct {
	Provider, Version string
	// Reason describes the problem.
	Reason string
}

func (e *SignatureError) Error() string {
	return fmt.Sprintf("verify signature of provider %q %s: %s; ask its publisher, or put a package that you trust into a mirror",
		e.Provider, e.Version, e.Reason)
}

// Origin finds the provider in its registry:
// https://developer.hashicorp.com/terraform/internals/remote-service-discovery.
func (c *Client) Origin(ctx context.Context, host, namespace, typ string) (*Origin, error) {
	start := &url.URL{Scheme: "https", Host: host, Path: "/.well-known/terraform.json"}
	var services map[string]any
	at, err := c.jsonDocument(ctx, start, c.token(host), &services)
	if errors.Is(err, ErrNotFound) {
		return nil, fmt.Errorf("%s is not a registry of providers (it has no %s): %w", host, start.Path, ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	ref, ok := services["providers.v1"].(string)
	if !ok {
		return nil, fmt.Errorf("%s is not a registry of providers (its service discovery has no providers.v1): %w", host, ErrNotFound)
	}
	api, err := resolve(at, ref)
	if err != nil {
		return nil, err
	}
	if !strings.HasSuffix(api.Path, "/") {
		api.Path += "/"
	}
	return &Origin{
		client: c, host: host, base: api.JoinPath(namespace, typ), provider: host + "/" + namespace + "/" + typ,
	}, nil
}

// tokenFor returns the registry's token, only for URLs of the registry.
func (o *Origin) tokenFor(u *url.URL) string {
	if u.Host == o.host || u.Host == o.base.Host {
		return o.client.token(o.host)
	}
	return ""
}

// Versions returns the provider's versions. It returns ErrNotFound if the registry does not have the provider.
func (o *Origin) Versions(ctx context.Context) ([]Version, error) {
	var list struct {
		Versions []Version `json:"versions"`
	}
	u := o.base.JoinPath("versions")
	_, err := o.client.jsonDocument(ctx, u, o.tokenFor(u), &list)
	return list.Versions, err
}

// Download writes the package of a version to a file and returns its checksum. It verifies the checksum against the
// list of checksums, and the list's signature with the registry's keys. It returns ErrNotFound if there is no package
// for the platform.
func (o *Origin) Download(ctx context.Context, version, goos, goarch string, into *os.File) (string, error) {
	var d struct {
		Filename     string `json:"filename"`
		URL          string `json:"download_url"`
		SumsURL      string `json:"shasums_url"`
		SignatureURL string `json:"shasums_signature_url"`
		Sum          string `json:"shasum"`
		Keys         struct {
			GPG []struct {
				ID    string `json:"key_id"`
				Armor string `json:"ascii_armor"`
			} `json:"gpg_public_keys"`
		} `json:"signing_keys"`
	}
	u := o.base.JoinPath(version, "download", goos, goarch)
	at, err := o.client.jsonDocument(ctx, u, o.tokenFor(u), &d)
	if err != nil {
		return "", err
	}
	refuse := func(format string, args ...any) error {
		return &SignatureError{Provider: o.provider, Version: version, Reason: fmt.Sprintf(format, args...)}
	}
	if len(d.Keys.GPG) == 0 || d.SignatureURL == "" || d.SumsURL == "" {
		return "", refuse("the registry names no key or no signature for it, so the server cannot verify it")
	}
	sums, err := o.fetch(ctx, at, d.SumsURL)
	if err != nil {
		return "", err
	}
	signature, err := o.fetch(ctx, at, d.SignatureURL)
	if err != nil {
		return "", err
	}
	var keys []string
	for _, k := range d.Keys.GPG {
		keys = append(keys, k.Armor)
	}
	if err := verifySignature(keys, sums, signature); err != nil {
		return "", refuse("%v", err)
	}
	want, ok := findSum(sums, d.Filename)
	if !ok {
		return "", refuse("the signed list of checksums does not name %q", d.Filename)
	}
	if d.Sum != "" && !strings.EqualFold(d.Sum, want) {
		return "", refuse("the registry and the signed list have different checksums for %q", d.Filename)
	}
	file, err := resolve(at, d.URL)
	if err != nil {
		return "", err
	}
	return o.client.download(ctx, file, o.tokenFor(file), into, want)
}

func (o *Origin) fetch(ctx context.Context, at *url.URL, ref string) ([]byte, error) {
	u, err := resolve(at, ref)
	if err != nil {
		return nil, err
	}
	data, _, err := o.client.document(ctx, u, o.tokenFor(u))
	return data, err
}

// verifySignature verifies a detached signature with each key in turn. It accepts a key that has expired since it
// signed, so that old versions stay installable.
func verifySignature(armoredKeys []string, document, signature []byte) error {
	for _, armored := range armoredKeys {
		keys, err := openpgp.ReadArmoredKeyRing(strings.NewReader(armored))
		if err != nil {
			return fmt.Errorf("the registry names an invalid key: %w", err)
		}
		signer, err := openpgp.CheckDetachedSignature(keys, bytes.NewReader(document), bytes.NewReader(signature), nil)
		switch {
		case errors.Is(err, pgperrors.ErrUnknownIssuer):
			continue
		case errors.Is(err, pgperrors.ErrKeyExpired) && signer != nil:
			return nil
		case err != nil:
			return fmt.Errorf("the signature of the list of checksums is invalid: %w", err)
		default:
			return nil
		}
	}
	return errors.New("the list of checksums is signed by none of the keys that the registry names")
}

// findSum returns a file's checksum in the output of sha256sum.
func findSum(sums []byte, filename string) (string, bool) {
	lines := bufio.NewScanner(bytes.NewReader(sums))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) != 2 || strings.TrimPrefix(fields[1], "*") != filename {
			continue
		}
		sum := strings.ToLower(fields[0])
		raw, err := hex.DecodeString(sum)
		return sum, err == nil && len(raw) == 32
	}
	return "", false
}
