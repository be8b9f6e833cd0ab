package provider

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/apparentlymart/go-versions/versions"
	"golang.org/x/mod/sumdb/dirhash"

	"github.com/hykube/hykube/internal/provider/archive"
	"github.com/hykube/hykube/internal/provider/mirror"
	"github.com/hykube/hykube/internal/provider/registry"
)

// place is a mirror or registry that may have a provider.
type place struct {
	name string
	// local is true for a mirror directory, which costs little to search.
	local      bool
	candidates func(context.Context) ([]candidate, error)
}

// candidate is a version in a place.
type candidate struct {
	version   versions.Version
	platforms []string
	// put writes the verified content to a directory. It returns the SHA-256 checksum of the archive, or "" if there
	// was none. It may leave files in scratch.
	put func(ctx context.Context, scratch, content string) (string, error)
	// hash and stamp are set for mirror directories. hash returns the h1 hash of the content. stamp changes whenever
	// the content may have changed.
	hash  func() (string, error)
	stamp string
}

func (in *Installer) places(s Source) []place {
	var out []place
	for _, dir := range in.config.MirrorDirs {
		out = append(out, place{name: "mirror directory " + dir, local: true, candidates: func(context.Context) ([]candidate, error) {
			return in.mirrorCandidates(dir, s)
		}})
	}
	if base := in.config.NetworkMirror; base != "" {
		out = append(out, place{name: "network mirror " + base, candidates: func(ctx context.Context) ([]candidate, error) {
			return in.networkCandidates(ctx, base, s)
		}})
	}
	if in.config.DirectRegistry {
		out = append(out, place{name: "registry " + s.Hostname, candidates: func(ctx context.Context) ([]candidate, error) {
			return in.originCandidates(ctx, s)
		}})
	}
	return out
}

func (in *Installer) mirrorCandidates(dir string, s Source) ([]candidate, error) {
	found, err := mirror.Packages(dir, s.Hostname, s.Namespace, s.Type)
	if err != nil {
		return nil, err
	}
	// Each version has one offer for all platforms. If this platform has both a packed and an unpacked package, the
	// unpacked one is used.
	slices.SortStableFunc(found, func(a, b mirror.Package) int { return boolOrder(a.Packed, b.Packed) })
	var out []candidate
	for _, p := range found {
		v, err := versions.ParseVersion(p.Version)
		if err != nil {
			in.log.Warn("a directory of the mirror is not named after a version", "path", p.Path)
			continue
		}
		i := slices.IndexFunc(out, func(o candidate) bool { return o.version.String() == v.String() })
		if i < 0 {
			i, out = len(out), append(out, candidate{version: v})
		}
		if p.Platform == in.platform && !slices.Contains(out[i].platforms, p.Platform) {
			in.fromMirror(&out[i], p, s)
		}
		out[i].platforms = append(out[i].platforms, p.Platform)
	}
	return out, nil
}

func boolOrder(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

func (in *Installer) fromMirror(o *candidate, p mirror.Package, s Source) {
	if p.Packed {
		o.stamp = stamp(p.Path)
		o.hash = func() (string, error) { return dirhash.HashZip(p.Path, dirhash.Hash1) }
		o.put = func(ctx context.Context, _, content string) (string, error) {
			return "", unpack(ctx, p.Path, content, s)
		}
		return
	}
	if exe, err := mirror.Executable(p.Path, s.Type); err == nil {
		o.stamp = stamp(exe)
	}
	o.hash = func() (string, error) {
		dir, err := filepath.EvalSymlinks(p.Path)
		if err != nil {
			return "", err
		}
		return hashDir(dir)
	}
	o.put = func(_ context.Context, _, content string) (string, error) { return "", mirror.Copy(p.Path, content) }
}

// stamp identifies the content of a file by its size and time, without reading it.
func stamp(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%s %d %d", path, info.Size(), info.ModTime().UnixNano())
}

func unpack(ctx context.Context, zipFile, content string, s Source) error {
	ctx, cancel := context.WithTimeout(ctx, unpackTimeout)
	defer cancel()
	return archive.Unpack(ctx, zipFile, content, "terraform-provider-"+s.Type, archive.Limits{})
}

func (in *Installer) networkCandidates(ctx context.Context, base string, s Source) ([]candidate, error) {
	m, err := in.client.Mirror(base, s.Hostname, s.Namespace, s.Type)
	if err != nil {
		return nil, err
	}
	names, err := m.Versions(ctx)
	if err != nil {
		return nil, err
	}
	var out []candidate
	for _, name := range names {
		v, err := versions.ParseVersion(name)
		if err != nil {
			continue
		}
		// A network mirror lists platforms only per version. Until then, assume that it has this platform.
		out = append(out, candidate{version: v, platforms: []string{in.platform}, put: func(ctx context.Context, scratch, content string) (string, error) {
			return in.fromNetworkMirror(ctx, m, name, s, scratch, content)
		}})
	}
	return out, nil
}

func (in *Installer) fromNetworkMirror(ctx context.Context, m *registry.Mirror, version string, s Source, scratch, content string) (string, error) {
	archives, err := m.Archives(ctx, version)
	if err != nil {
		return "", err
	}
	a, ok := archives[in.platform]
	if !ok {
		var platforms []string
		for p := range archives {
			platforms = append(platforms, p)
		}
		slices.Sort(platforms)
		return "", &PlatformError{Version: version, Platform: in.platform, Available: platforms, Searched: "the network mirror"}
	}
	sum, err := in.fetch(ctx, s, scratch, content, func(f *os.File) (string, error) { return m.Download(ctx, a, f) })
	if err != nil {
		return "", err
	}
	if h1 := withPrefix(a.Hashes, "h1:"); len(h1) > 0 {
		got, err := hashDir(content)
		if err != nil {
			return "", err
		}
		if !slices.Contains(h1, got) {
			return "", &ChecksumError{What: "package from the network mirror", Want: h1[0], Got: got, Remedy: "ask the operator of the mirror"}
		}
	}
	return sum, nil
}

func (in *Installer) originCandidates(ctx context.Context, s Source) ([]candidate, error) {
	origin, err := in.client.Origin(ctx, s.Hostname, s.Namespace, s.Type)
	if err != nil {
		return nil, err
	}
	list, err := origin.Versions(ctx)
	if err != nil {
		return nil, err
	}
	goos, goarch, _ := strings.Cut(in.platform, "_")
	var out []candidate
	for _, entry := range list {
		v, err := versions.ParseVersion(entry.Version)
		if err != nil || !supportsProtocol(entry.Protocols) {
			continue
		}
		o := candidate{version: v, put: func(ctx context.Context, scratch, content string) (string, error) {
			return in.fetch(ctx, s, scratch, content, func(f *os.File) (string, error) {
				return origin.Download(ctx, entry.Version, goos, goarch, f)
			})
		}}
		for _, p := range entry.Platforms {
			o.platforms = append(o.platforms, p.OS+"_"+p.Arch)
		}
		out = append(out, o)
	}
	return out, nil
}

// supportsProtocol reports whether one of the protocols is 5 or 6. It returns true if the registry does not list
// protocols.
func supportsProtocol(protocols []string) bool {
	return len(protocols) == 0 || slices.ContainsFunc(protocols, func(p string) bool {
		return p == "5" || p == "6" || strings.HasPrefix(p, "5.") || strings.HasPrefix(p, "6.")
	})
}

// fetch downloads an archive, verifies it, and unpacks the same open file.
func (in *Installer) fetch(ctx context.Context, s Source, scratch, content string, download func(*os.File) (string, error)) (string, error) {
	f, err := os.OpenFile(filepath.Join(scratch, "package.zip"), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum, err := download(f)
	if wrong, ok := errors.AsType[*registry.ChecksumError](err); ok {
		return "", &ChecksumError{What: wrong.URL, Want: "SHA-256 " + wrong.Want, Got: wrong.Got,
			Remedy: "it was damaged or replaced during the download; try again, then ask its publisher"}
	}
	if err != nil {
		return "", err
	}
	return sum, unpack(ctx, f.Name(), content, s)
}
