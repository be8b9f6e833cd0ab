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

// Origin is a provider in the registry that its address names.
type Origin struct {
	client   *Client
	host     string
	base     *url.URL // of the provider within the registry's API
	provider string
}

// Version is a version of a provider, as a registry lists it.
type Version struct {
	Version string `json:"version"`
	// Protocols are the versions of the provider protocol that it speaks, such as "5.0".
	Protocols []string `json:"protocols"`
	Platforms []struct {
		OS   string `json:"os"`
		Arch string `json:"arch"`
	} `json:"platforms"`
}

// SignatureError says that the checksums of a package are not signed by who publishes it.
type SignatureError struct {
	Provider, Version string
	// Reason is what is wrong.
	Reason string
}

func (e *SignatureError) Error() string {
	return fmt.Sprintf("verify signature of provider %q %s: %s; ask its publisher, or put a package that you trust into a mirror",
		e.Provider, e.Version, e.Reason)
}

// Origin finds the provider's registry: https://developer.hashicorp.com/terraform/internals/remote-service-discovery.
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

// tokenFor is the registry's token, for the registry alone.
func (o *Origin) tokenFor(u *url.URL) string {
	if u.Host == o.host || u.Host == o.base.Host {
		return o.client.token(o.host)
	}
	return ""
}

// Versions lists the provider's versions; ErrNotFound when the registry doesn't know the provider.
func (o *Origin) Versions(ctx context.Context) ([]Version, error) {
	var list struct {
		Versions []Version `json:"versions"`
	}
	u := o.base.JoinPath("versions")
	_, err := o.client.jsonDocument(ctx, u, o.tokenFor(u), &list)
	return list.Versions, err
}

// Download writes the package of a version into a file, having verified that the registry's keys signed the list that its
// checksum is on. It returns the checksum; ErrNotFound when there is no package for the platform.
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
		return "", refuse("the registry names no key or no signature for it, so nobody vouches for it")
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
		return "", refuse("the registry gives another checksum for %q than the signed list does", d.Filename)
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

// verifySignature checks a detached signature against each key in turn. A key that has expired since it signed is still the
// publisher's: old versions must stay installable.
func verifySignature(armoredKeys []string, document, signature []byte) error {
	for _, armored := range armoredKeys {
		keys, err := openpgp.ReadArmoredKeyRing(strings.NewReader(armored))
		if err != nil {
			return fmt.Errorf("the registry names a key that can't be read: %w", err)
		}
		signer, err := openpgp.CheckDetachedSignature(keys, bytes.NewReader(document), bytes.NewReader(signature), nil)
		switch {
		case errors.Is(err, pgperrors.ErrUnknownIssuer):
			continue
		case errors.Is(err, pgperrors.ErrKeyExpired) && signer != nil:
			return nil
		case err != nil:
			return fmt.Errorf("the signature of the list of checksums does not fit: %w", err)
		default:
			return nil
		}
	}
	return errors.New("the list of checksums is signed by none of the keys that the registry names")
}

// findSum finds a file's checksum in what sha256sum writes.
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
