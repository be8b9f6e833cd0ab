package provider

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/mod/sumdb/dirhash"

	"github.com/hykube/hykube/internal/provider/archive"
)

const otherPlatform = "plan9_mips"

func ourPlatform() string { return runtime.GOOS + "_" + runtime.GOARCH }

// zipPackage is a package whose plugin has the version as its content.
func zipPackage(t *testing.T, version string, more ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, name := range append([]string{"terraform-provider-cloud_v" + version}, more...) {
		f, err := w.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(f, "plugin %s", version)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func writeFile(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o755); err != nil {
		t.Fatal(err)
	}
}

func cloud() Source { return Source{"registry.example.com", "team", "cloud"} }

// mirrorDir is a mirror with 1.0.0 and 1.1.0 packed, 1.2.0 unpacked, 2.0.0-beta1 packed, 3.0.0 for another machine.
func mirrorDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	base := filepath.Join(dir, "registry.example.com", "team", "cloud")
	for _, v := range []string{"1.0.0", "1.1.0", "2.0.0-beta1"} {
		writeFile(t, filepath.Join(base, "terraform-provider-cloud_"+v+"_"+ourPlatform()+".zip"), zipPackage(t, v))
	}
	writeFile(t, filepath.Join(base, "1.2.0", ourPlatform(), "terraform-provider-cloud_v1.2.0_x5"), []byte("plugin 1.2.0"))
	writeFile(t, filepath.Join(base, "3.0.0", otherPlatform, "terraform-provider-cloud"), []byte("plugin"))
	writeFile(t, filepath.Join(base, "README.txt"), []byte("not a package"))
	writeFile(t, filepath.Join(base, "not-a-version", ourPlatform(), "x"), []byte("not a package"))
	return dir
}

func TestInstallFromMirrorDirectory(t *testing.T) {
	dir := mirrorDir(t)
	for _, tc := range []struct{ constraint, want, why string }{
		{"", "1.2.0", "the newest release that is for this machine"},
		{"1.0.0", "1.0.0", "exact"},
		{"= 1.0.0", "1.0.0", "exact, with an operator"},
		{"v1.0.0", "!a \"v\" prefix should not be used", "a leading v"},
		{"~> 1.0", "1.2.0", "the last part may grow"},
		{"~> 1.0.0", "1.0.0", "the last part may grow"},
		{">= 1.0, < 1.2", "1.1.0", "a range"},
		{"!= 1.2.0", "1.1.0", "all but one"},
		{"2.0.0-beta1", "2.0.0-beta1", "a pre-release by its name"},
		{">= 1.2, < 3.0", "1.2.0", "a pre-release is not in a range"},
		{"newest please", "!parse version constraint", "not a constraint"},
		{"~> 1.0 || rm -rf", "!parse version constraint", "not a constraint"},
		{strings.Repeat("1", 10_000), "!longer than", "an absurd length"},
	} {
		t.Run(tc.why+" "+tc.constraint[:min(20, len(tc.constraint))], func(t *testing.T) {
			in := NewInstaller(InstallerConfig{Dir: t.TempDir(), MirrorDirs: []string{t.TempDir(), dir}})
			pkg, err := in.Install(t.Context(), cloud(), tc.constraint, Trust{})
			if want, ok := strings.CutPrefix(tc.want, "!"); ok {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Fatalf("got %v, %v; want an error with %q", pkg, err, want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if pkg.Version != tc.want {
				t.Errorf("version %s, want %s", pkg.Version, tc.want)
			}
			if err := pkg.Verify(); err != nil {
				t.Errorf("verify: %v", err)
			}
			data, err := os.ReadFile(pkg.Executable)
			if err != nil || string(data) != "plugin "+tc.want {
				t.Errorf("plugin = %q, %v", data, err)
			}
			if info, err := os.Stat(pkg.Executable); err != nil || info.Mode().Perm() != 0o755 {
				t.Errorf("mode = %v, %v", info.Mode(), err)
			}
			again, err := in.Install(t.Context(), cloud(), tc.constraint, Trust{})
			if err != nil || !reflect.DeepEqual(again, pkg) {
				t.Errorf("again = %v, %v; want %v", again, err, pkg)
			}
		})
	}
}

// TestNoVersionFits asks for versions that a mirror directory does not have, or not for this machine.
func TestNoVersionFits(t *testing.T) {
	empty, dir := t.TempDir(), mirrorDir(t)
	in := NewInstaller(InstallerConfig{Dir: t.TempDir(), MirrorDirs: []string{empty, dir}})
	_, err := in.Install(t.Context(), cloud(), "> 4.0", Trust{})
	none, _ := errors.AsType[*VersionError](err)
	if none == nil || none.Constraint != "> 4.0" || !slices.Equal(none.Available, []string{"3.0.0", "2.0.0-beta1", "1.2.0", "1.1.0", "1.0.0"}) || !strings.Contains(strings.Join(none.Searched, " "), dir) {
		t.Errorf("got %v, want a VersionError with all versions", err)
	}
	_, err = in.Install(t.Context(), cloud(), "3.0.0", Trust{})
	other, _ := errors.AsType[*PlatformError](err)
	if other == nil || other.Version != "3.0.0" || other.Platform != ourPlatform() || !slices.Equal(other.Available, []string{otherPlatform}) || !strings.Contains(other.Searched, dir) {
		t.Errorf("got %v, want a PlatformError with the other platform", err)
	}
}

func TestInstallNotFound(t *testing.T) {
	for _, tc := range []struct {
		why    string
		config InstallerConfig
		want   string
	}{
		{"no place to look", InstallerConfig{}, "no mirror and no registry"},
		{"an empty mirror", InstallerConfig{MirrorDirs: []string{"/no/such/mirror"}}, "no such provider in mirror directory /no/such/mirror"},
	} {
		t.Run(tc.why, func(t *testing.T) {
			tc.config.Dir = t.TempDir()
			_, err := NewInstaller(tc.config).Install(t.Context(), cloud(), "", Trust{})
			if _, ok := errors.AsType[*NotFoundError](err); !ok || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want a NotFoundError with %q", err, tc.want)
			}
		})
	}
}

func TestInstallRefusesWhatChanged(t *testing.T) {
	dir := mirrorDir(t)
	in := NewInstaller(InstallerConfig{Dir: t.TempDir(), MirrorDirs: []string{dir}})
	unpacked, err := in.Install(t.Context(), cloud(), "1.2.0", Trust{})
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "registry.example.com", "team", "cloud", "1.2.0", ourPlatform(), "terraform-provider-cloud_v1.2.0_x5"), []byte("changed!"))
	_, err = in.Install(t.Context(), cloud(), "1.2.0", Trust{})
	if _, ok := errors.AsType[*ChecksumError](err); !ok || !strings.Contains(err.Error(), "as another version") {
		t.Errorf("mirror changed: %v, want a ChecksumError", err)
	}
	if err := unpacked.Verify(); err != nil {
		t.Errorf("what is installed was touched: %v", err)
	}

	packed, err := in.Install(t.Context(), cloud(), "1.0.0", Trust{})
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, packed.Executable, []byte("evil"))
	if _, ok := errors.AsType[*ChecksumError](packed.Verify()); !ok {
		t.Errorf("verify of a changed plugin: %v", packed.Verify())
	}
	_, err = in.Install(t.Context(), cloud(), "1.0.0", Trust{})
	if _, ok := errors.AsType[*ChecksumError](err); !ok || !strings.Contains(err.Error(), "checksum mismatch") {
		t.Errorf("install over a changed plugin: %v, want a ChecksumError", err)
	}
	// The way out that the message names works.
	if err := os.RemoveAll(filepath.Dir(packed.Executable)); err != nil {
		t.Fatal(err)
	}
	if again, err := in.Install(t.Context(), cloud(), "1.0.0", Trust{}); err != nil || !reflect.DeepEqual(again, packed) {
		t.Errorf("after the removal: %v, %v; want %v", again, err, packed)
	}
}

func TestInstallRefusesHostileArchive(t *testing.T) {
	for _, tc := range []struct {
		why string
		zip []byte
	}{
		{"a path that leads out", zipPackage(t, "1.0.0", "../../../../evil")},
		{"no zip file", []byte("<html>")},
	} {
		t.Run(tc.why, func(t *testing.T) {
			dir, dest := t.TempDir(), t.TempDir()
			writeFile(t, filepath.Join(dir, "registry.example.com/team/cloud/terraform-provider-cloud_1.0.0_"+ourPlatform()+".zip"), tc.zip)
			_, err := NewInstaller(InstallerConfig{Dir: dest, MirrorDirs: []string{dir}}).Install(t.Context(), cloud(), "", Trust{})
			if _, ok := errors.AsType[*archive.Error](err); !ok {
				t.Errorf("got %v, want an archive.Error", err)
			}
			files, _ := filepath.Glob(filepath.Join(dest, "*/*/*/*/*"))
			if len(files) != 0 {
				t.Errorf("left behind: %v", files)
			}
		})
	}
	dir := t.TempDir()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	if _, err := w.Create("terraform-provider-clouds"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	writeFile(t, filepath.Join(dir, "registry.example.com/team/cloud/terraform-provider-cloud_1.0.0_"+ourPlatform()+".zip"), b.Bytes())
	_, err := NewInstaller(InstallerConfig{Dir: t.TempDir(), MirrorDirs: []string{dir}}).Install(t.Context(), cloud(), "", Trust{})
	if err == nil || !strings.Contains(err.Error(), "has no file named terraform-provider-cloud") {
		t.Errorf("another provider's package: %v", err)
	}
}

func TestInstallFromRegistry(t *testing.T) {
	t.Parallel()
	r := newFakeRegistry(t)
	r.token = "s3cret"
	r.flaky = 2
	in := r.installer(t)
	pkg, err := in.Install(t.Context(), r.source(t), "~> 1.0", Trust{})
	if err != nil {
		t.Fatal(err)
	}
	if pkg.Version != "1.1.0" {
		t.Errorf("version %s, want 1.1.0", pkg.Version)
	}
	zipFile := filepath.Join(t.TempDir(), "a.zip")
	writeFile(t, zipFile, r.zips["1.1.0"])
	if want, err := dirhash.HashZip(zipFile, dirhash.Hash1); err != nil || pkg.Checksum != want {
		t.Errorf("checksum %s, want %s as in Terraform's lock file (%v)", pkg.Checksum, want, err)
	}
	before := len(r.requests)
	if _, err := in.Install(t.Context(), r.source(t), "1.1.0", Trust{}); err != nil || len(r.requests) != before {
		t.Errorf("an exact version that is installed asked the registry: %v, %v", r.requests[before:], err)
	}
	r.Close()
	if again, err := in.Install(t.Context(), r.source(t), "~> 1.0", Trust{}); err != nil || !reflect.DeepEqual(again, pkg) {
		t.Errorf("without the registry: %v, %v; want what is installed", again, err)
	}
}

func TestInstallFromRegistryRefuses(t *testing.T) {
	t.Parallel()
	is := func(target any) func(error) bool { return func(err error) bool { return errors.As(err, target) } }
	for _, tc := range []struct {
		why        string
		spoil      func(*testing.T, *fakeRegistry)
		constraint string
		is         func(error) bool
		want       string
	}{
		{"a package that is not the one on the signed list", func(_ *testing.T, r *fakeRegistry) { r.sums["2.0.0"] = strings.Repeat("ab", 32) }, "",
			is(new(*ChecksumError)), "checksum mismatch"},
		{"a list that another key signed", func(t *testing.T, r *fakeRegistry) { r.signedBy = newKey(t) }, "",
			is(new(*SignatureError)), "signed by none of the trusted keys"},
		{"an unsigned package", func(_ *testing.T, r *fakeRegistry) { r.unsigned = true }, "",
			is(new(*SignatureError)), "cannot verify it"},
		{"a download that is not over TLS", func(_ *testing.T, r *fakeRegistry) { r.insecure = true }, "",
			nil, "not https"},
		{"a version that is not there", nil, "~> 7.0", is(new(*VersionError)), "has 2.0.0, 1.1.0, 1.0.0; change the constraint"},
		{"a version of an older protocol", nil, "9.0.0", is(new(*VersionError)), "no version meets"},
		{"a platform that is not there", func(_ *testing.T, r *fakeRegistry) { r.platforms = []string{otherPlatform} }, "",
			is(new(*PlatformError)), "the packages are for " + otherPlatform},
		{"a hostile archive", func(t *testing.T, r *fakeRegistry) { r.zips["2.0.0"] = zipPackage(t, "2.0.0", "/etc/evil") }, "",
			is(new(*archive.Error)), "outside of the target directory"},
		{"a registry that is always busy", func(_ *testing.T, r *fakeRegistry) { r.flaky = 1000 }, "", nil, "503 Service Unavailable"},
		{"a registry that wants another token", func(_ *testing.T, r *fakeRegistry) { r.refuseTokens = true }, "", nil, "TF_TOKEN_"},
	} {
		t.Run(tc.why, func(t *testing.T) {
			t.Parallel()
			r := newFakeRegistry(t)
			in := r.installer(t)
			if tc.spoil != nil {
				tc.spoil(t, r)
			}
			pkg, err := in.Install(t.Context(), r.source(t), tc.constraint, Trust{})
			if err == nil {
				t.Fatalf("installed %v", pkg)
			}
			if tc.is != nil && !tc.is(err) {
				t.Errorf("%T is not the kind of error that was meant: %v", err, err)
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %q, want %q in it", err, tc.want)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error gives a secret away: %v", err)
			}
			if found, _ := filepath.Glob(filepath.Join(in.config.Dir, "*/*/*/*/*")); len(found) != 0 {
				t.Errorf("left behind: %v", found)
			}
		})
	}
	t.Run("a provider that is not there", func(t *testing.T) {
		t.Parallel()
		r := newFakeRegistry(t)
		s := r.source(t)
		s.Type = "nothing"
		_, err := r.installer(t).Install(t.Context(), s, "", Trust{})
		if _, ok := errors.AsType[*NotFoundError](err); !ok || !strings.Contains(err.Error(), "no such provider in registry "+r.host()) {
			t.Errorf("got %v, want a NotFoundError", err)
		}
	})
}

func TestInstallFromNetworkMirror(t *testing.T) {
	t.Parallel()
	r := newFakeRegistry(t)
	zipFile := filepath.Join(t.TempDir(), "a.zip")
	writeFile(t, zipFile, r.zips["1.0.0"])
	h1, err := dirhash.HashZip(zipFile, dirhash.Hash1)
	if err != nil {
		t.Fatal(err)
	}
	r.sums["h1"] = h1
	newInstaller := func() *Installer {
		return NewInstaller(InstallerConfig{Dir: t.TempDir(), NetworkMirror: r.URL + "/mirror/", HTTPClient: r.Client()})
	}
	for constraint, want := range map[string]string{"": "1.1.0", "< 1.1": "1.0.0"} {
		if pkg, err := newInstaller().Install(t.Context(), cloud(), constraint, Trust{}); err != nil || pkg.Version != want || pkg.Verification.KnownFrom != FromMirror {
			t.Errorf("constraint %q: %v, %v; want %s", constraint, pkg, err, want)
		}
	}
	r.sums["h1"] = "h1:" + strings.Repeat("A", 43) + "="
	_, err = newInstaller().Install(t.Context(), cloud(), "1.0.0", Trust{})
	if _, ok := errors.AsType[*ChecksumError](err); !ok {
		t.Errorf("wrong h1: %v, want a ChecksumError", err)
	}
	_, err = NewInstaller(InstallerConfig{Dir: t.TempDir(), NetworkMirror: "http://mirror.example.com/"}).Install(t.Context(), cloud(), "", Trust{})
	if err == nil || !strings.Contains(err.Error(), "https") {
		t.Errorf("a mirror without TLS: %v", err)
	}
}

func TestInstallAtOnce(t *testing.T) {
	dir := mirrorDir(t)
	in := NewInstaller(InstallerConfig{Dir: t.TempDir(), MirrorDirs: []string{dir}})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if pkg, err := in.Install(t.Context(), cloud(), "~> 1.0", Trust{}); err != nil || pkg.Version != "1.2.0" {
				t.Errorf("got %v, %v", pkg, err)
			}
		})
	}
	all.Wait()
}
