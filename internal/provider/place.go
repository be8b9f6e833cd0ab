package provider

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
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
	// put writes the content to a directory, and returns the evidence of its origin. It may leave files in scratch.
	put func(ctx context.Context, need Requirements, scratch, content string) (evidence, error)
	// hash and stamp are set for mirror directories. hash returns the h1 hash of the content. stamp changes whenever
	// the content may have changed.
	hash  func() (string, error)
	stamp string
}

func (in *Installer) places(s Source) []place {
	var out []place
	for _, dir := range in.config.MirrorDirs {
		out = append(out, place{name: "mirror directory " + dir, local: true,
			candidates: func(context.Context) ([]candidate, error) {
				return in.mirrorCandidates(dir, s)
			}})
	}
	if base := in.config.NetworkMirror; base != "" {
		out = append(out, place{name: "network mirror " + base,
			candidates: func(ctx context.Context) ([]candidate, error) {
				return in.networkCandidates(ctx, base, s)
			}})
	}
	if in.config.DirectRegistry {
		out = append(out, place{name: "registry " + s.Hostname,
			candidates: func(ctx context.Context) ([]candidate, error) {
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
		o.put = func(ctx context.Context, need Requirements, scratch, content string) (e evidence, err error) {
			if e.Signed, err = mirrorSums(p, s); err != nil {
				return e, err
			}
			// The file may change while it is read, so the server verifies and unpacks a copy.
			e.Archive, err = in.fetch(ctx, need, scratch, content,
				func(f *os.File) (string, error) { return copyFile(p.Path, f) })
			return e, err
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
	o.put = func(_ context.Context, _ Requirements, _, content string) (evidence, error) {
		return evidence{}, mirror.Copy(p.Path, content)
	}
}

// mirrorSums returns the publisher's signed list of checksums beside a packed package, or nil without one.
func mirrorSums(p mirror.Package, s Source) (*registry.SignedSums, error) {
	list := filepath.Join(filepath.Dir(p.Path), fmt.Sprintf("terraform-provider-%s_%s_SHA256SUMS", s.Type, p.Version))
	sums, err := os.ReadFile(list)
	if err != nil {
		return nil, ignoreMissing(err)
	}
	sig, err := os.ReadFile(list + ".sig")
	if err != nil {
		return nil, ignoreMissing(err)
	}
	return &registry.SignedSums{From: "mirror", Filename: filepath.Base(p.Path), Sums: sums, Signature: sig}, nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// copyFile copies a file and returns its SHA-256 checksum.
func copyFile(path string, into *os.File) (string, error) {
	from, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer from.Close()
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(into, sum), from); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
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
		out = append(out, candidate{version: v, platforms: []string{in.platform},
			put: func(ctx context.Context, need Requirements, scratch, content string) (evidence, error) {
				return in.fromNetworkMirror(ctx, m, name, need, scratch, content)
			}})
	}
	return out, nil
}

func (in *Installer) fromNetworkMirror(ctx context.Context, m *registry.Mirror, version string, need Requirements,
	scratch, content string) (e evidence, err error) {
	archives, err := m.Archives(ctx, version)
	if err != nil {
		return e, err
	}
	a, ok := archives[in.platform]
	if !ok {
		return e, &PlatformError{Version: version, Platform: in.platform, Available: slices.Sorted(maps.Keys(archives)),
			Searched: "the network mirror"}
	}
	e.Hashes = a.Hashes
	e.Archive, err = in.fetch(ctx, need, scratch, content,
		func(f *os.File) (string, error) { return m.Download(ctx, a, f) })
	if err != nil {
		return e, err
	}
	if h1 := withPrefix(a.Hashes, "h1:"); len(h1) > 0 {
		got, err := hashDir(content)
		if err != nil {
			return e, err
		}
		if !slices.Contains(h1, got) {
			return e, &ChecksumError{What: "package from the network mirror", Want: h1[0], Got: got,
				Remedy: "ask the operator of the mirror"}
		}
	}
	return e, nil
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
	var out []candidate
	for _, entry := range list {
		v, err := versions.ParseVersion(entry.Version)
		if err != nil || !supportsProtocol(entry.Protocols) {
			continue
		}
		o := candidate{version: v, put: func(ctx context.Context, need Requirements, scratch,
			content string) (evidence, error) {
			return in.fromOrigin(ctx, origin, entry.Version, need, scratch, content)
		}}
		for _, p := range entry.Platforms {
			o.platforms = append(o.platforms, p.OS+"_"+p.Arch)
		}
		out = append(out, o)
	}
	return out, nil
}

func (in *Installer) fromOrigin(ctx context.Context, origin *registry.Origin, version string, need Requirements,
	scratch, content string) (e evidence, err error) {
	goos, goarch, _ := strings.Cut(in.platform, "_")
	offer, err := origin.Offer(ctx, version, goos, goarch)
	if err != nil {
		return e, err
	}
	if _, err := need.signer(version, in.platform, &offer.Signed); err != nil { // do not download an untrusted file
		return e, err
	}
	e.Signed = &offer.Signed
	e.Archive, err = in.fetch(ctx, need, scratch, content,
		func(f *os.File) (string, error) { return offer.Download(ctx, f) })
	return e, err
}

// supportsProtocol reports whether one of the protocols is 5 or 6. It returns true if the registry does not list
// protocols.
func supportsProtocol(protocols []string) bool {
	return len(protocols) == 0 || slices.ContainsFunc(protocols, func(p string) bool {
		return p == "5" || p == "6" || strings.HasPrefix(p, "5.") || strings.HasPrefix(p, "6.")
	})
}

// fetch downloads an archive, verifies it, and unpacks the same open file.
func (in *Installer) fetch(ctx context.Context, need Requirements, scratch, content string,
	download func(*os.File) (string, error)) (string, error) {
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
	if err := need.beforeUnpack(sum); err != nil {
		return "", err
	}
	return sum, unpack(ctx, f.Name(), content, need.source)
}
