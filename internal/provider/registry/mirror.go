package registry

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
)

// Mirror is a provider in a network mirror.
type Mirror struct {
	client *Client
	host   string // host of the mirror
	base   *url.URL
}

// Archive is a package in a mirror.
type Archive struct {
	URL string `json:"url"`
	// Hashes are the mirror's checksums of the package: "zh:" with the SHA-256 checksum of the zip file, "h1:" with
	// that of its content.
	Hashes []string `json:"hashes"`
}

// Mirror returns the provider in the network mirror with the base URL.
func (c *Client) Mirror(base, host, namespace, typ string) (*Mirror, error) {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("the address of a network mirror must be an https URL, such as https://mirror.example.com/providers/")
	}
	return &Mirror{client: c, host: u.Host, base: u.JoinPath(host, namespace, typ)}, nil
}

func (m *Mirror) tokenFor(u *url.URL) string {
	if u.Host == m.host {
		return m.client.token(m.host)
	}
	return ""
}

// Versions returns the provider's versions. It returns ErrNotFound if the mirror does not have the provider.
func (m *Mirror) Versions(ctx context.Context) ([]string, error) {
	var index struct {
		Versions map[string]any `json:"versions"`
	}
	u := m.base.JoinPath("index.json")
	if _, err := m.client.jsonDocument(ctx, u, m.tokenFor(u), &index); err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(index.Versions)), nil
}

// Archives returns the packages of a version by platform, such as "linux_amd64". Their URLs are absolute.
func (m *Mirror) Archives(ctx context.Context, version string) (map[string]Archive, error) {
	var list struct {
		Archives map[string]Archive `json:"archives"`
	}
	u := m.base.JoinPath(version + ".json")
	at, err := m.client.jsonDocument(ctx, u, m.tokenFor(u), &list)
	if err != nil {
		return nil, err
	}
	for platform, a := range list.Archives {
		abs, err := resolve(at, a.URL)
		if err != nil {
			return nil, fmt.Errorf("package for %s: %w", platform, err)
		}
		a.URL = abs.String()
		list.Archives[platform] = a
	}
	return list.Archives, nil
}

// Download writes a package to a file and returns its checksum. It verifies the "zh:" hashes if the mirror has any.
func (m *Mirror) Download(ctx context.Context, a Archive, into *os.File) (string, error) {
	u, err := url.Parse(a.URL)
	if err != nil {
		return "", errors.New("download package: the mirror names something that is not a URL")
	}
	var want []string
	for _, h := range a.Hashes {
		if sum, ok := strings.CutPrefix(h, "zh:"); ok {
			want = append(want, strings.ToLower(sum))
		}
	}
	return m.client.download(ctx, u, m.tokenFor(u), into, want...)
}
