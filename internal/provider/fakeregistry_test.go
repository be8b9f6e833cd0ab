package provider

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"

	"github.com/hykube/hykube/internal/provider/registry"
)

// fakeRegistry is a registry of one provider over TLS, whose fields make it misbehave.
type fakeRegistry struct {
	*httptest.Server
	mu       sync.Mutex
	requests []string
	// flaky is the number of requests that are still answered with 503.
	flaky        int
	token        string
	refuseTokens bool

	key, signedBy *openpgp.Entity
	zips          map[string][]byte // by version
	sums          map[string]string // by version, when it is not that of the zip file
	unsigned      bool
	noSignature   bool   // the signature is missing
	tamperedSums  bool   // the list is changed after it was signed
	rollback      string // version whose files are served for every version
	signedAt      time.Time
	insecure      bool
	platforms     []string
}

func newFakeRegistry(t *testing.T) *fakeRegistry {
	t.Helper()
	r := &fakeRegistry{key: newKey(t), zips: map[string][]byte{}, sums: map[string]string{}, platforms: []string{ourPlatform(), otherPlatform}}
	r.signedBy = r.key
	for _, v := range []string{"1.0.0", "1.1.0", "2.0.0"} {
		r.zips[v] = zipPackage(t, v, "LICENSE")
	}
	r.Server = httptest.NewTLSServer(http.HandlerFunc(r.serve))
	t.Cleanup(r.Close)
	return r
}

func newKey(t *testing.T) *openpgp.Entity {
	t.Helper()
	k, err := openpgp.NewEntity("Publisher", "", "publisher@example.com", nil)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func armored(k *openpgp.Entity) string {
	var b bytes.Buffer
	w, err := armor.Encode(&b, openpgp.PublicKeyType, nil)
	if err == nil {
		err = errors.Join(k.Serialize(w), w.Close())
	}
	if err != nil {
		panic(err)
	}
	return b.String()
}

func (r *fakeRegistry) host() string { return strings.TrimPrefix(r.URL, "https://") }

func packageName(version string) string {
	return "terraform-provider-cloud_" + version + "_" + ourPlatform() + ".zip"
}

func (r *fakeRegistry) sumsFile(version string) []byte {
	sum := r.sums[version]
	if sum == "" {
		raw := sha256.Sum256(r.zips[version])
		sum = hex.EncodeToString(raw[:])
	}
	return fmt.Appendf(nil, "%s  other.zip\n%s  %s\n", strings.Repeat("0", 64), sum, packageName(version))
}

func (r *fakeRegistry) serve(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = append(r.requests, req.URL.Path)
	if r.flaky > 0 {
		r.flaky--
		http.Error(w, "busy", http.StatusServiceUnavailable)
		return
	}
	if (r.token != "" || r.refuseTokens) && !strings.HasPrefix(req.URL.Path, "/files/") && (r.refuseTokens || req.Header.Get("Authorization") != "Bearer "+r.token) {
		http.Error(w, "who are you", http.StatusUnauthorized)
		return
	}
	answer := func(v any) { _ = json.NewEncoder(w).Encode(v) }
	type object = map[string]any
	path := strings.TrimPrefix(req.URL.Path, "/v1/p/team/cloud/")
	version := strings.TrimPrefix(req.URL.Query().Get("v"), "v")
	switch {
	case req.URL.Path == "/.well-known/terraform.json":
		answer(object{"providers.v1": "/v1/p/", "modules.v1": "/v1/m/", "login.v1": object{"client": "x"}})
	case path == "versions":
		var list []any
		for v := range r.zips {
			var platforms []any
			for _, p := range r.platforms {
				goos, arch, _ := strings.Cut(p, "_")
				platforms = append(platforms, object{"os": goos, "arch": arch})
			}
			list = append(list, object{"version": v, "protocols": []string{"5.0", "6.1"}, "platforms": platforms})
		}
		list = append(list, object{"version": "9.0.0", "protocols": []string{"4.0"}, "platforms": []any{}})
		answer(object{"id": "team/cloud", "versions": list})
	case strings.HasSuffix(path, "/download/"+runtime.GOOS+"/"+runtime.GOARCH):
		v, _, _ := strings.Cut(path, "/")
		v = cmp.Or(r.rollback, v)
		base := r.URL
		if r.insecure {
			base = strings.Replace(base, "https:", "http:", 1)
		}
		d := object{
			"filename": packageName(v), "download_url": base + "/files/zip?v=" + v + "&secret=hunter2",
			"shasums_url": "/files/sums?v=" + v, "shasums_signature_url": "/files/sig?v=" + v,
		}
		if !r.unsigned {
			d["signing_keys"] = object{"gpg_public_keys": []any{
				object{"key_id": "1", "ascii_armor": armored(r.key)},
			}}
		}
		answer(d)
	case req.URL.Path == "/files/zip":
		_, _ = w.Write(r.zips[version])
	case req.URL.Path == "/files/sums":
		_, _ = w.Write(r.sumsFile(version))
		if r.tamperedSums {
			_, _ = w.Write([]byte("\n"))
		}
	case req.URL.Path == "/files/sig" && r.noSignature:
		http.NotFound(w, req)
	case req.URL.Path == "/files/sig":
		config := &packet.Config{Time: func() time.Time { return r.signedAt }}
		if r.signedAt.IsZero() {
			config = nil
		}
		if err := openpgp.DetachSign(w, r.signedBy, bytes.NewReader(r.sumsFile(version)), config); err != nil {
			panic(err)
		}
	case req.URL.Path == "/mirror/registry.example.com/team/cloud/index.json":
		answer(object{"versions": object{"1.0.0": object{}, "1.1.0": object{}, "bogus": object{}}})
	case req.URL.Path == "/mirror/registry.example.com/team/cloud/1.1.0.json":
		raw := sha256.Sum256(r.zips["1.1.0"])
		answer(object{"archives": object{
			ourPlatform(): object{"url": "../../../../files/zip?v=1.1.0", "hashes": []string{"zh:" + hex.EncodeToString(raw[:])}},
		}})
	case req.URL.Path == "/mirror/registry.example.com/team/cloud/1.0.0.json":
		answer(object{"archives": object{
			ourPlatform(): object{"url": r.URL + "/files/zip?v=1.0.0", "hashes": []string{r.sums["h1"]}},
		}})
	default:
		http.NotFound(w, req)
	}
}

func (r *fakeRegistry) source(t *testing.T) Source {
	t.Helper()
	s, err := ParseSource(r.host() + "/team/cloud")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (r *fakeRegistry) installer(t *testing.T) *Installer {
	t.Helper()
	return impatient(NewInstaller(InstallerConfig{Dir: t.TempDir(), DirectRegistry: true, HTTPClient: r.Client(),
		Token: func(host string) string {
			if host == r.host() {
				return r.token
			}
			return ""
		}}))
}

// impatient makes an installer retry without long pauses.
func impatient(in *Installer) *Installer {
	in.client = registry.New(registry.Config{HTTP: in.config.HTTPClient, Token: in.config.Token, Backoff: time.Millisecond})
	return in
}
