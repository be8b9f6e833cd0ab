package provider

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"golang.org/x/mod/sumdb/dirhash"

	"github.com/hykube/hykube/internal/provider/signature"
	"github.com/hykube/hykube/internal/provider/trust"
)

// sums returns the checksums of a zip file in Terraform's lock file.
func sums(t *testing.T, data []byte) (h1, zh string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "a.zip")
	writeFile(t, file, data)
	h1, err := dirhash.HashZip(file, dirhash.Hash1)
	if err != nil {
		t.Fatal(err)
	}
	raw := sha256.Sum256(data)
	return h1, "zh:" + hex.EncodeToString(raw[:])
}

// shortLived is a key that was valid for an hour, ten days ago.
func shortLived(t *testing.T) (*openpgp.Entity, time.Time) {
	t.Helper()
	made := time.Now().Add(-10 * 24 * time.Hour)
	k, err := openpgp.NewEntity("Expired", "", "", &packet.Config{Time: func() time.Time { return made }, KeyLifetimeSecs: 3600})
	if err != nil {
		t.Fatal(err)
	}
	return k, made.Add(time.Minute)
}

func fingerprint(k *openpgp.Entity) string { return fmt.Sprintf("%X", k.PrimaryKey.Fingerprint) }

func policyFile(t *testing.T, rule string) *trust.Policy {
	t.Helper()
	file := filepath.Join(t.TempDir(), "trust.yaml")
	writeFile(t, file, []byte("apiVersion: config.hykube.io/v1alpha1\nkind: ProviderTrustPolicy\nrules:\n- "+rule+"\n"))
	p, err := trust.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func problem(err error) string {
	if s, ok := errors.AsType[*SignatureError](err); ok {
		return map[signature.Problem]string{signature.Unsigned: "Unsigned", signature.UnknownKey: "UnknownKey", signature.BadSignature: "BadSignature"}[s.Problem]
	}
	if _, ok := errors.AsType[*ChecksumError](err); ok {
		return "ChecksumMismatch"
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// TestTrustInRegistry installs version 2.0.0 from a registry over TLS, with real keys.
func TestTrustInRegistry(t *testing.T) {
	t.Parallel()
	type setup struct {
		r  *fakeRegistry
		t  Trust
		h1 string
		zh string
	}
	for _, tc := range []struct {
		why  string
		set  func(*testing.T, *setup)
		want string // the problem; empty if it installs
		from Knowledge
	}{
		{"nothing required", func(*testing.T, *setup) {}, "", FromSignedList},
		{"its h1 is listed", func(_ *testing.T, s *setup) { s.t.Checksums = []string{s.h1} }, "", FromSpec},
		{"its zh is listed among others", func(_ *testing.T, s *setup) { s.t.Checksums = []string{"zh:" + strings.Repeat("0", 64), s.zh} }, "", FromSpec},
		{"only its zh differs, h1 matches", func(_ *testing.T, s *setup) { s.t.Checksums = []string{"zh:" + strings.Repeat("0", 64), s.h1} }, "", FromSpec},
		{"another zh is listed", func(_ *testing.T, s *setup) { s.t.Checksums = []string{"zh:" + strings.Repeat("0", 64)} }, "ChecksumMismatch", 0},
		{"another h1 is listed", func(_ *testing.T, s *setup) { s.t.Checksums = []string{"h1:" + strings.Repeat("A", 43) + "="} }, "ChecksumMismatch", 0},
		{"the publisher's key is pinned", func(_ *testing.T, s *setup) { s.t.SigningKeys = []string{armored(s.r.key)} }, "", FromSignedList},
		{"its fingerprint is pinned", func(_ *testing.T, s *setup) { s.t.SigningKeys = []string{fingerprint(s.r.key)} }, "", FromSignedList},
		{"another key is pinned", func(t *testing.T, s *setup) { s.t.SigningKeys = []string{armored(newKey(t))} }, "UnknownKey", 0},
		{"another fingerprint is pinned", func(t *testing.T, s *setup) { s.t.SigningKeys = []string{fingerprint(newKey(t))} }, "UnknownKey", 0},
		{"the registry swaps keys and package", func(t *testing.T, s *setup) {
			s.t.SigningKeys = []string{armored(s.r.key)}
			s.r.key = newKey(t)
			s.r.signedBy = s.r.key
		}, "UnknownKey", 0},
		{"a changed zip file", func(_ *testing.T, s *setup) { s.r.sums["2.0.0"] = strings.Repeat("ab", 32) }, "ChecksumMismatch", 0},
		{"a changed list", func(_ *testing.T, s *setup) { s.r.tamperedSums = true }, "BadSignature", 0},
		{"no signature", func(_ *testing.T, s *setup) { s.r.noSignature = true }, "Unsigned", 0},
		{"no signature, but a listed checksum", func(_ *testing.T, s *setup) { s.r.noSignature, s.t.Checksums = true, []string{s.h1} }, "Unsigned", 0},
		{"a key that expired since", func(t *testing.T, s *setup) {
			s.r.key, s.r.signedAt = shortLived(t)
			s.r.signedBy = s.r.key
		}, "", FromSignedList},
		{"a key that had expired", func(t *testing.T, s *setup) {
			var during time.Time
			s.r.key, during = shortLived(t)
			s.r.signedBy, s.r.signedAt = s.r.key, during.Add(24*time.Hour)
			lifetime := uint32(0) // the thief of a key does not heed its expiry
			stolen := *s.r.key
			stolen.Identities = map[string]*openpgp.Identity{}
			for name, id := range s.r.key.Identities {
				own, sig := *id, *id.SelfSignature
				sig.KeyLifetimeSecs, own.SelfSignature = &lifetime, &sig
				stolen.Identities[name] = &own
			}
			s.r.signedBy = &stolen
		}, "BadSignature", 0},
		{"a revoked key", func(t *testing.T, s *setup) {
			if err := s.r.key.RevokeKey(packet.KeyCompromised, "stolen", nil); err != nil {
				t.Fatal(err)
			}
			stolen := *s.r.key
			stolen.Revocations = nil
			s.r.signedBy = &stolen
		}, "BadSignature", 0},
		{"an old version with its old, valid signature", func(_ *testing.T, s *setup) {
			s.r.rollback, s.t.SigningKeys = "1.0.0", []string{armored(s.r.key)}
		}, "BadSignature", 0},
	} {
		t.Run(tc.why, func(t *testing.T) {
			t.Parallel()
			s := &setup{r: newFakeRegistry(t)}
			s.h1, s.zh = sums(t, s.r.zips["2.0.0"])
			tc.set(t, s)
			in := s.r.installer(t)
			pkg, err := in.Install(t.Context(), s.r.source(t), "2.0.0", s.t)
			if got := problem(err); got != tc.want {
				t.Fatalf("installed %+v, %v; want %q", pkg, err, tc.want)
			}
			if tc.want != "" {
				if v, ok := errors.AsType[*VerificationError](err); !ok || v.Version != "2.0.0" {
					t.Errorf("%v is no VerificationError of the version", err)
				}
				if found, _ := filepath.Glob(filepath.Join(in.config.Dir, "*/*/*/*/*")); len(found) != 0 {
					t.Errorf("left behind: %v", found)
				}
				return
			}
			v := pkg.Verification
			if v.KnownFrom != tc.from || v.Archive != s.zh || v.Signer.KeyID != s.r.key.PrimaryKey.KeyIdString() {
				t.Errorf("verification %+v", v)
			}
		})
	}
}

// TestTrustInInstalledPackage changes the requirements after the installation.
func TestTrustInInstalledPackage(t *testing.T) {
	t.Parallel()
	r := newFakeRegistry(t)
	in := r.installer(t)
	pkg, err := in.Install(t.Context(), r.source(t), "2.0.0", Trust{})
	if err != nil {
		t.Fatal(err)
	}
	key := armored(r.key)
	r.Close() // everything that follows is known from the record
	for why, tc := range map[string]struct {
		t    Trust
		want string
	}{
		"its h1":      {Trust{Checksums: []string{pkg.Checksum}}, ""},
		"its zh":      {Trust{Checksums: []string{pkg.Verification.Archive}}, ""},
		"another":     {Trust{Checksums: []string{"zh:" + strings.Repeat("0", 64)}}, "ChecksumMismatch"},
		"its key":     {Trust{SigningKeys: []string{key}}, ""},
		"another key": {Trust{SigningKeys: []string{armored(newKey(t))}}, "UnknownKey"},
	} {
		_, err := in.Install(t.Context(), r.source(t), "2.0.0", tc.t)
		if got := problem(err); got != tc.want {
			t.Errorf("%s: %v, want %q", why, err, tc.want)
		}
		if _, err := os.Stat(pkg.Executable); err != nil {
			t.Fatalf("%s: the installed files are gone: %v", why, err)
		}
	}
}

// TestTrustInMirrors has a mirror directory and a network mirror of a provider, and its registry.
func TestTrustInMirrors(t *testing.T) {
	t.Parallel()
	const version = "1.1.0"
	type setup struct {
		r      *fakeRegistry
		t      Trust
		rule   string
		mirror []byte // the zip file in the mirror directory
		signed bool   // the mirror has the signed list
		down   bool   // the registry does not answer
		h1     string
	}
	other := func(t *testing.T) []byte { return zipPackage(t, version, "backdoor") }
	pinned := func(s *setup) { s.t.SigningKeys = []string{armored(s.r.key)} }
	const mustMatch = "{name: all, sources: ['*'], mirrorsMustMatch: true}"
	for _, tc := range []struct {
		why  string
		set  func(*testing.T, *setup)
		want string
		from Knowledge
	}{
		{"nothing required", func(t *testing.T, s *setup) { s.mirror, s.down = other(t), true }, "", Nothing},
		{"a listed checksum", func(_ *testing.T, s *setup) { s.t.Checksums, s.down = []string{s.h1}, true }, "", FromSpec},
		{"another checksum", func(t *testing.T, s *setup) { s.mirror, s.t.Checksums = other(t), []string{s.h1} }, "ChecksumMismatch", 0},
		{"a pinned key, and the registry has the package", func(_ *testing.T, s *setup) { pinned(s) }, "", FromSignedList},
		{"a pinned key, and the registry has another package", func(t *testing.T, s *setup) { pinned(s); s.mirror = other(t) }, "ChecksumMismatch", 0},
		{"a pinned key, and no registry", func(_ *testing.T, s *setup) { pinned(s); s.down = true }, "Unsigned", 0},
		{"a pinned key, and a signed list in the mirror", func(_ *testing.T, s *setup) { pinned(s); s.signed, s.down = true, true }, "", FromSignedList},
		{"a pinned key, and another package than the list's", func(t *testing.T, s *setup) { pinned(s); s.signed, s.mirror = true, other(t) }, "ChecksumMismatch", 0},
		{"another key, and a signed list in the mirror", func(t *testing.T, s *setup) { s.signed, s.t.SigningKeys = true, []string{armored(newKey(t))} }, "UnknownKey", 0},
		{"mirrors must match, and it does", func(_ *testing.T, s *setup) { s.rule = mustMatch }, "", FromSignedList},
		{"mirrors must match, and it does not", func(t *testing.T, s *setup) { s.rule, s.mirror = mustMatch, other(t) }, "ChecksumMismatch", 0},
		{"mirrors must match, and the checksum is listed", func(_ *testing.T, s *setup) { s.rule, s.t.Checksums, s.down = mustMatch, []string{s.h1}, true }, "", FromSpec},
		{"a signature is required, and the checksum is listed", func(_ *testing.T, s *setup) {
			s.rule, s.t.Checksums, s.down = "{name: all, sources: ['*'], requireSignature: true}", []string{s.h1}, true
		}, "Unsigned", 0},
		{"the policy pins another key", func(t *testing.T, s *setup) {
			pinned(s)
			s.rule = "{name: all, sources: ['*'], signingKeys: [" + fingerprint(newKey(t)) + "]}"
		}, "UnknownKey", 0},
	} {
		t.Run(tc.why, func(t *testing.T) {
			t.Parallel()
			s := &setup{r: newFakeRegistry(t)}
			s.mirror = s.r.zips[version]
			s.h1, _ = sums(t, s.mirror)
			tc.set(t, s)
			source := s.r.source(t)
			dir := t.TempDir()
			base := filepath.Join(dir, source.Hostname, source.Namespace, source.Type)
			writeFile(t, filepath.Join(base, packageName(version)), s.mirror)
			if s.signed {
				list := filepath.Join(base, "terraform-provider-cloud_"+version+"_SHA256SUMS")
				writeFile(t, list, s.r.sumsFile(version))
				sig, err := os.Create(list + ".sig")
				if err == nil {
					err = errors.Join(openpgp.DetachSign(sig, s.r.key, strings.NewReader(string(s.r.sumsFile(version))), nil), sig.Close())
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if s.down {
				s.r.Close()
			}
			in := s.r.installer(t)
			in.config.MirrorDirs = []string{dir}
			if s.rule != "" {
				in.config.Policy = policyFile(t, s.rule)
			}
			pkg, err := in.Install(t.Context(), source, version, s.t)
			if got := problem(err); got != tc.want {
				t.Fatalf("installed %+v, %v; want %q", pkg, err, tc.want)
			}
			if err == nil && pkg.Verification.KnownFrom != tc.from {
				t.Errorf("verification %+v, want %v", pkg.Verification, tc.from)
			}
		})
	}
}

func TestTrustPolicyRefusesSources(t *testing.T) {
	in := NewInstaller(InstallerConfig{Dir: t.TempDir(), MirrorDirs: []string{mirrorDir(t)}, Policy: policyFile(t, "{name: ours, sources: ['hashicorp/*'], requireChecksums: true}")})
	_, err := in.Install(t.Context(), cloud(), "", Trust{})
	if _, ok := errors.AsType[*trust.RefusedError](err); !ok || !strings.Contains(err.Error(), "it allows hashicorp/*") {
		t.Errorf("another source: %v", err)
	}
	_, err = in.Install(t.Context(), Source{"registry.terraform.io", "hashicorp", "time"}, "", Trust{})
	if refused, ok := errors.AsType[*trust.RefusedError](err); !ok || !refused.NoChecksums || refused.Rule != "ours" {
		t.Errorf("without checksums: %v", err)
	}
}
