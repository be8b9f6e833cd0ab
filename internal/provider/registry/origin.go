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
)

// Origin is a provider in the registry of its address.
type Origin struct {
	client *Client
	host   string
	base   *url.URL // of the provider in the registry's API
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
		return nil, fmt.Errorf("%s is not a registry of providers (its service discovery has no providers.v1): %w",
			host, ErrNotFound)
	}
	api, err := resolve(at, ref)
	if err != nil {
		return nil, err
	}
	if !strings.HasSuffix(api.Path, "/") {
		api.Path += "/"
	}
	return &Origin{client: c, host: host, base: api.JoinPath(namespace, typ)}, nil
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

// Offer is the package of a version for one platform.
type Offer struct {
	Signed SignedSums

	origin *Origin
	file   *url.URL
	sum    string // the checksum that the registry names; may be empty
}

// SignedSums is a publisher's list of checksums, with its signature.
type SignedSums struct {
	// From names the registry or mirror of the list.
	From string `json:"from"`
	// Filename is the name of the package in the list.
	Filename string `json:"filename"`
	// Sums is the list, and Signature its detached signature; empty if there is none.
	Sums      []byte `json:"sums"`
	Signature []byte `json:"signature,omitempty"`
	// Keys are the armored public keys that the registry names.
	Keys []string `json:"keys,omitempty"`
}

// Sum returns the SHA-256 checksum of the package in the list. It returns false if the list does not name the package.
func (s SignedSums) Sum() (string, bool) { return findSum(s.Sums, s.Filename) }

// Offer returns the package of a version, whose signature the caller verifies. It returns ErrNotFound if there is no
// package for the platform.
func (o *Origin) Offer(ctx context.Context, version, goos, goarch string) (*Offer, error) {
	var d struct {
		Filename     string `json:"filename"`
		URL          string `json:"download_url"`
		SumsURL      string `json:"shasums_url"`
		SignatureURL string `json:"shasums_signature_url"`
		Sum          string `json:"shasum"`
		Keys         struct {
			GPG []struct {
				Armor string `json:"ascii_armor"`
			} `json:"gpg_public_keys"`
		} `json:"signing_keys"`
	}
	u := o.base.JoinPath(version, "download", goos, goarch)
	at, err := o.client.jsonDocument(ctx, u, o.tokenFor(u), &d)
	if err != nil {
		return nil, err
	}
	offer := &Offer{Signed: SignedSums{From: "registry " + o.host, Filename: d.Filename}, origin: o, sum: d.Sum}
	for _, k := range d.Keys.GPG {
		offer.Signed.Keys = append(offer.Signed.Keys, k.Armor)
	}
	if offer.Signed.Sums, err = o.fetch(ctx, at, d.SumsURL); err != nil {
		return nil, err
	}
	if offer.Signed.Signature, err = o.fetch(ctx, at, d.SignatureURL); err != nil {
		return nil, err
	}
	offer.file, err = resolve(at, d.URL)
	return offer, err
}

// Download writes the package to a file and returns its checksum, which it verifies against the list.
func (f *Offer) Download(ctx context.Context, into *os.File) (string, error) {
	want, ok := f.Signed.Sum()
	if !ok {
		return "", fmt.Errorf("the list of checksums does not name %q", f.Signed.Filename)
	}
	if f.sum != "" && !strings.EqualFold(f.sum, want) {
		return "", &ChecksumError{URL: plain(f.file), Want: want, Got: f.sum}
	}
	return f.origin.client.download(ctx, f.file, f.origin.tokenFor(f.file), into, want)
}

// fetch downloads a document that the registry refers to. It returns nil if the registry does not have it.
func (o *Origin) fetch(ctx context.Context, at *url.URL, ref string) ([]byte, error) {
	if ref == "" {
		return nil, nil
	}
	u, err := resolve(at, ref)
	if err != nil {
		return nil, err
	}
	data, _, err := o.client.document(ctx, u, o.tokenFor(u))
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	return data, err
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
