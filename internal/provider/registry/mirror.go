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
	host   string // of the mirror
	base   *url.URL
}

// Archive is a package in a mirror.
type Archive struct {
	URL string `json:"url"`
	// Hashes are those that the mirror vouches for: "zh:" and the SHA-256 sum of the zip file, "h1:" and that of its content.
	Hashes []string `json:"hashes"`
}

// Mirror is the provider in the mirror at a base URL.
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

// Versions lists the provider's versions; ErrNotFound when the mirror doesn't know the provider.
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

// Archives lists the packages of a version by platform, such as "linux_amd64". Their URLs are absolute.
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

// Download writes a package into a file, and compares it with its "zh:" hashes, if the mirror gives any. It returns the
// checksum.
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
