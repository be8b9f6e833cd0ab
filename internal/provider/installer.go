package provider

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/apparentlymart/go-versions/versions"

	"github.com/hykube/hykube/internal/provider/mirror"
	"github.com/hykube/hykube/internal/provider/registry"
	"github.com/hykube/hykube/internal/provider/trust"
)

// InstallerConfig configures an Installer.
type InstallerConfig struct {
	// Dir is the directory of installed packages, with the layout of an unpacked mirror. It is created if it does not
	// exist.
	Dir string
	// MirrorDirs are mirror directories, searched first and in this order.
	MirrorDirs []string
	// NetworkMirror is the URL of a network mirror, searched next; empty means none.
	NetworkMirror string
	// DirectRegistry permits requests to the registry in a provider's address.
	DirectRegistry bool
	// Policy is the server's trust policy; nil allows all sources.
	Policy *trust.Policy
	// HTTPClient sends the requests; nil means a client with default timeouts.
	HTTPClient *http.Client
	// Token returns the token for a host; nil means Terraform's environment variables TF_TOKEN_<host>.
	Token func(host string) string
	// Logger logs installations and retries; nil discards them.
	Logger *slog.Logger
}

// unpackTimeout is the maximum time for unpacking a package.
const unpackTimeout = 10 * time.Minute

// Installer finds, verifies and installs packages. It is safe for concurrent use.
type Installer struct {
	config   InstallerConfig
	platform string
	client   *registry.Client
	log      *slog.Logger

	mu    sync.Mutex
	locks map[Source]*sync.Mutex
}

// NewInstaller returns an installer with the configuration.
func NewInstaller(c InstallerConfig) *Installer {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Token == nil {
		c.Token = environmentToken
	}
	if abs, err := filepath.Abs(c.Dir); err == nil {
		c.Dir = abs // other packages receive a package's path
	}
	return &Installer{
		config: c, platform: runtime.GOOS + "_" + runtime.GOARCH, log: c.Logger, locks: map[Source]*sync.Mutex{},
		client: registry.New(registry.Config{HTTP: c.HTTPClient, Token: c.Token, Logger: c.Logger}),
	}
}

// environmentToken reads Terraform's environment variable with the token of a host. In its name, dots become
// underscores, and dashes become two.
func environmentToken(host string) string {
	return os.Getenv("TF_TOKEN_" + strings.NewReplacer(".", "_", "-", "__", ":", "_").Replace(host))
}

// Install returns the package of the newest version that meets the constraint. It installs the package if necessary. It
// searches mirror directories, the network mirror and the registry, in this order, and uses the first with a matching
// version. An exact version that is already installed needs no search, unless a mirror directory has the same version.
// It returns no package that does not meet t and the trust policy, whether it was installed before or not. A provider
// that is a part of the server has one version, which the constraint does not concern.
//
// It returns a *NotFoundError, *VersionError, *PlatformError, *trust.RefusedError, *VerificationError or *archive.Error
// for these problems.
func (in *Installer) Install(ctx context.Context, s Source, constraint string, t Trust) (Package, error) {
	wanted, err := parseConstraint(constraint)
	if err != nil {
		return Package{}, fmt.Errorf("install provider %q: %w", s, err)
	}
	need, err := Require(in.config.Policy, s, t)
	if err != nil {
		return Package{}, fmt.Errorf("install provider %q: %w", s, err)
	}
	if s.BuiltIn() {
		return Package{Source: s, Version: terraformVersion, Checksum: "built-in"}, nil
	}
	lock := in.lock(s)
	lock.Lock()
	defer lock.Unlock()
	pkg, err := in.install(ctx, need, wanted, constraint)
	if err != nil {
		return Package{}, fmt.Errorf("install provider %q: %w", s, err)
	}
	return pkg, nil
}

func (in *Installer) lock(s Source) *sync.Mutex {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.locks[s] == nil {
		in.locks[s] = new(sync.Mutex)
	}
	return in.locks[s]
}

// parseConstraint parses a constraint with Terraform's syntax. An empty one matches any release.
func parseConstraint(c string) (versions.Set, error) {
	if strings.TrimSpace(c) == "" {
		return versions.Released, nil
	}
	if len(c) > 256 {
		return versions.None, fmt.Errorf("parse version constraint \"%.40s...\": longer than 256 characters", c)
	}
	set, err := versions.MeetingConstraintsStringRuby(c)
	if err != nil {
		return versions.None, fmt.Errorf(
			`parse version constraint %q: %w; write it as "1.2.3", ">= 1.2, < 2.0" or "~> 1.2"`, c, err)
	}
	return set, nil
}

func (in *Installer) install(ctx context.Context, need Requirements, wanted versions.Set,
	constraint string) (Package, error) {
	s := need.source
	installed, err := in.installed(s)
	if err != nil {
		return Package{}, err
	}
	var searched, available []string
	var elsewhere *PlatformError
	for _, p := range in.places(s) {
		if !p.local && wanted.IsFinite() {
			if pkg, ok, err := in.newestInstalled(ctx, need, installed, wanted); ok || err != nil {
				return pkg, err
			}
		}
		searched = append(searched, p.name)
		offers, err := p.candidates(ctx)
		if err != nil && !errors.Is(err, registry.ErrNotFound) {
			if pkg, ok, verr := in.newestInstalled(ctx, need, installed, wanted); ok || verr != nil {
				in.log.Warn("provider source can't be reached, using the installed package", "provider", s.String(),
					"version", pkg.Version, "error", err)
				return pkg, verr
			}
			switch {
			case elsewhere != nil:
				err = fmt.Errorf("%w (%w)", err, elsewhere)
			case len(available) > 0:
				err = fmt.Errorf("%w (the mirrors have %s, which %q does not allow)", err,
					strings.Join(dedupe(available), ", "), constraint)
			}
			return Package{}, fmt.Errorf("search %s: %w; check that the server can reach it, or put the provider into a mirror directory", p.name, err)
		}
		slices.SortStableFunc(offers, func(a, b candidate) int { return compareVersions(b.version, a.version) })
		for _, o := range offers {
			available = append(available, o.version.String())
			if !wanted.Has(o.version) {
				continue
			}
			if !slices.Contains(o.platforms, in.platform) {
				if elsewhere == nil {
					elsewhere = &PlatformError{Version: o.version.String(), Platform: in.platform,
						Available: o.platforms, Searched: p.name}
				}
				continue
			}
			return in.take(ctx, need, p, o, installed)
		}
	}
	if pkg, ok, err := in.newestInstalled(ctx, need, installed, wanted); ok || err != nil {
		return pkg, err
	}
	switch {
	case elsewhere != nil:
		return Package{}, elsewhere
	case len(available) > 0:
		return Package{}, &VersionError{Constraint: constraint, Available: dedupe(available), Searched: searched}
	default:
		return Package{}, &NotFoundError{Searched: searched}
	}
}

// compareVersions compares versions. It compares builds of the same version by name, so that the choice is
// deterministic.
func compareVersions(a, b versions.Version) int {
	switch {
	case a.LessThan(b):
		return -1
	case b.LessThan(a):
		return 1
	default:
		return cmp.Compare(a.String(), b.String())
	}
}

func dedupe(in []string) []string {
	var out []string
	for _, s := range in {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// record is the file with data about an installed package, beside its directory.
type record struct {
	// Checksum is the h1 hash of the directory after the installation.
	Checksum string `json:"checksum"`
	evidence
	// From names the mirror or registry of the package.
	From string `json:"from"`
	// Stamp identifies the mirror's file, so that an unchanged one is not read again.
	Stamp string `json:"stamp,omitempty"`
}

func (in *Installer) packageDir(s Source, version string) string {
	return filepath.Join(in.config.Dir, s.Hostname, s.Namespace, s.Type, version, in.platform)
}

// installed returns the installed versions with their records. A directory without a record remains from an interrupted
// installation.
func (in *Installer) installed(s Source) (map[string]record, error) {
	found, err := mirror.Packages(in.config.Dir, s.Hostname, s.Namespace, s.Type)
	if err != nil {
		return nil, err
	}
	out := map[string]record{}
	for _, p := range found {
		if p.Packed || p.Platform != in.platform {
			continue
		}
		data, err := os.ReadFile(p.Path + ".json")
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		var r record
		if err := json.Unmarshal(data, &r); err != nil || r.Checksum == "" {
			return nil, fmt.Errorf("read record %s.json: it is damaged; remove it and the directory beside it, so that the server installs the package again", p.Path)
		}
		out[p.Version] = r
	}
	return out, nil
}

// newestInstalled returns the newest installed package that meets the constraint.
func (in *Installer) newestInstalled(ctx context.Context, need Requirements, installed map[string]record,
	wanted versions.Set) (Package, bool, error) {
	var best *versions.Version
	for name := range installed {
		v, err := versions.ParseVersion(name)
		if err == nil && wanted.Has(v) && (best == nil || compareVersions(v, *best) > 0) {
			best = &v
		}
	}
	if best == nil {
		return Package{}, false, nil
	}
	pkg, err := in.open(ctx, need, best.String(), installed[best.String()])
	return pkg, err == nil, err
}

// open verifies an installed package and returns it.
func (in *Installer) open(ctx context.Context, need Requirements, version string, r record) (Package, error) {
	dir := in.packageDir(need.source, version)
	exe, err := mirror.Executable(dir, need.source.Type)
	if err != nil {
		return Package{}, err
	}
	pkg := Package{Source: need.source, Version: version, Executable: exe, Checksum: r.Checksum}
	if err := pkg.Verify(); err != nil {
		return Package{}, unverified(version, err)
	}
	before := r.Signed
	if pkg.Verification, err = in.verify(ctx, need, version, &r); err != nil {
		return Package{}, unverified(version, err)
	}
	if r.Signed != before {
		err = writeRecord(dir, filepath.Dir(dir), r)
	}
	return pkg, err
}

// take returns the package of an offer. It installs the package unless it is installed already.
func (in *Installer) take(ctx context.Context, need Requirements, p place, o candidate,
	installed map[string]record) (Package, error) {
	version := o.version.String()
	dir := in.packageDir(need.source, version)
	if r, ok := installed[version]; ok {
		if p.local && o.stamp != r.Stamp {
			if sum, err := o.hash(); err != nil {
				return Package{}, err
			} else if sum != r.Checksum {
				return Package{}, unverified(version, &ChecksumError{
					What: fmt.Sprintf("version %s in %s", version, p.name), Want: r.Checksum + " (as installed)",
					Got: sum,
					Remedy: "publish the changed package as another version, or, to accept it, remove " + dir +
						" and add its checksum to spec.checksums",
				})
			}
		}
		return in.open(ctx, need, version, r)
	}

	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return Package{}, err
	}
	incoming, err := os.MkdirTemp(parent, ".incoming-")
	if err != nil {
		return Package{}, err
	}
	defer os.RemoveAll(incoming)
	content := filepath.Join(incoming, "content")
	if err := os.Mkdir(content, 0o755); err != nil {
		return Package{}, err
	}
	r := record{From: p.name, Stamp: o.stamp}
	if err := in.fill(ctx, need, o, incoming, &r); err != nil {
		return Package{}, unverified(version, fmt.Errorf("version %s from %s: %w", version, p.name, err))
	}
	if err := in.commit(incoming, content, dir, r); err != nil {
		return Package{}, err
	}
	in.log.Info("provider installed", "provider", need.source.String(), "version", version, "from", p.name, "checksum",
		r.Checksum)
	return in.open(ctx, need, version, r)
}

// fill writes the content of a candidate below incoming and verifies it.
func (in *Installer) fill(ctx context.Context, need Requirements, o candidate, incoming string, r *record) (err error) {
	content := filepath.Join(incoming, "content")
	if r.evidence, err = o.put(ctx, need, incoming, content); err != nil {
		return err
	}
	if _, err := mirror.Executable(content, need.source.Type); err != nil {
		return err
	}
	if r.Checksum, err = hashDir(content); err != nil {
		return err
	}
	_, err = in.verify(ctx, need, o.version.String(), r)
	return err
}

func withPrefix(hashes []string, prefix string) []string {
	return slices.DeleteFunc(slices.Clone(hashes), func(h string) bool { return !strings.HasPrefix(h, prefix) })
}

// commit moves a verified package to its directory. It writes the record last, because a directory without a record is
// ignored.
func (in *Installer) commit(incoming, content, dir string, r record) error {
	if err := os.RemoveAll(dir); err != nil { // remove the rest of an interrupted installation
		return err
	}
	if err := os.Rename(content, dir); err != nil {
		return err
	}
	return writeRecord(dir, incoming, r)
}

// writeRecord replaces the record of the package in dir. It uses scratch, a directory on the same disk.
func writeRecord(dir, scratch string, r record) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	tmp := filepath.Join(scratch, ".record")
	if err := os.WriteFile(tmp, append(data, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(tmp, dir+".json")
}
