package access_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/hykube/hykube/server/access"
)

func openCerts(t *testing.T, dir string, now time.Time, hosts ...string) *access.Certificates {
	t.Helper()
	c, err := access.OpenCertificates(dir, append([]string{"127.0.0.1", "localhost"}, hosts...), now)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func serving(t *testing.T, c *access.Certificates) *x509.Certificate {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(c.ServingCert(), c.ServingKey())
	if err != nil {
		t.Fatal(err)
	}
	return pair.Leaf
}

func TestServingCertificate(t *testing.T) {
	now := time.Now()
	for name, test := range map[string]struct {
		later time.Duration
		hosts []string
		same  bool
	}{
		"a restart keeps it":            {time.Hour, nil, true},
		"near its end it is renewed":    {300 * 24 * time.Hour, nil, false},
		"another address makes another": {time.Hour, []string{"192.0.2.7", "hykube.example.com"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			first := openCerts(t, dir, now)
			before, ca := serving(t, first), first.ServerCA()
			second := openCerts(t, dir, now.Add(test.later), test.hosts...)
			after := serving(t, second)
			if before.Equal(after) != test.same {
				t.Errorf("same certificate: %v, want %v", !test.same, test.same)
			}
			if !bytes.Equal(ca, second.ServerCA()) {
				t.Error("the authority changed")
			}
			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM(second.ServerCA())
			for _, host := range append(test.hosts, "127.0.0.1", "localhost") {
				if _, err := after.Verify(x509.VerifyOptions{DNSName: host, Roots: roots, CurrentTime: now.Add(test.later)}); err != nil {
					t.Errorf("verify for %s: %v", host, err)
				}
			}
		})
	}
}

func TestHostsThatTheCertificateLacks(t *testing.T) {
	dir := t.TempDir()
	openCerts(t, filepath.Join(dir, "tls"), time.Now(), "hykube.example.com", "192.0.2.7")
	for url, want := range map[string]string{
		"https://hykube.example.com:6443": "", "https://192.0.2.7:6443": "", "": "",
		"https://nothost:7443": "nothost", "https://192.0.2.8": "192.0.2.8",
	} {
		if got := access.UncertifiedHost(dir, url); got != want {
			t.Errorf("%q: %q, want %q", url, got, want)
		}
	}
	if got := access.UncertifiedHost(t.TempDir(), "https://nothost"); got != "" {
		t.Errorf("%q, without a certificate", got)
	}
}

func admin(path, url string) access.Admin {
	return access.Admin{Path: path, ServerURL: url, Lifetime: access.AdminLifetime}
}

func TestKubeconfig(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "admin.kubeconfig")
	c := openCerts(t, filepath.Join(dir, "tls"), time.Now())
	if err := c.WriteKubeconfig(admin(path, "https://127.0.0.1:1"), time.Now()); err != nil {
		t.Fatal(err)
	}
	first, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.WriteKubeconfig(admin(path, "https://127.0.0.1:2"), time.Now()); err != nil {
		t.Fatal(err)
	}
	second, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	if second.Host != "https://127.0.0.1:2" || !bytes.Equal(first.CertData, second.CertData) {
		t.Errorf("at another port: host %s, same certificate %v", second.Host, bytes.Equal(first.CertData, second.CertData))
	}
	// People work with the file: they add users, with certificates of the same authority, and choose a namespace.
	worked, err := clientcmd.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	carol, err := access.UserKubeconfig(dir, access.User{Name: "carol", Expires: time.Now().Add(time.Hour)}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	hers, err := clientcmd.Load(carol)
	if err != nil {
		t.Fatal(err)
	}
	worked.AuthInfos["carol"] = hers.AuthInfos["carol"]
	worked.Contexts["hykube"].Namespace = "shop"
	if err := clientcmd.WriteToFile(*worked, path); err != nil {
		t.Fatal(err)
	}
	if err := c.WriteKubeconfig(admin(path, "https://127.0.0.1:3"), time.Now()); err != nil {
		t.Fatal(err)
	}
	kept, err := clientcmd.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if kept.Contexts["hykube"].Namespace != "shop" || kept.AuthInfos["carol"] == nil || !bytes.Equal(kept.AuthInfos["hykube"].ClientCertificateData, first.CertData) || kept.Clusters["hykube"].Server != "https://127.0.0.1:3" {
		t.Errorf("a restart keeps namespace %q, carol %t", kept.Contexts["hykube"].Namespace, kept.AuthInfos["carol"] != nil)
	}
	if err := c.WriteKubeconfig(admin(path, "https://127.0.0.1:2"), time.Now().Add(300*24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	third, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil || bytes.Equal(first.CertData, third.CertData) {
		t.Errorf("near its end the certificate stays: %v", err)
	}
}

// TestAdministratorsCertificate has a kubeconfig of one moment, and writes it again at another one.
func TestAdministratorsCertificate(t *testing.T) {
	const day = 24 * time.Hour
	now := time.Now()
	for name, test := range map[string]struct {
		first, then time.Duration // lifetimes
		later       time.Duration
		replace     bool
		otherCA     bool
		same        bool
	}{
		"a restart keeps it":                    {first: 7 * day, then: 7 * day, later: day, same: true},
		"two thirds are over":                   {first: 7 * day, then: 7 * day, later: 5 * day},
		"it expired while the server was off":   {first: 7 * day, then: 7 * day, later: 70 * day},
		"a longer lifetime":                     {first: 365 * day, then: 7 * day, later: day},
		"a shorter lifetime":                    {first: 7 * day, then: day, later: time.Hour},
		"the authority is another":              {first: 7 * day, then: 7 * day, later: day, otherCA: true},
		"an administrator asked for a rotation": {first: 7 * day, then: 7 * day, later: day, replace: true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "admin.kubeconfig")
			if err := openCerts(t, filepath.Join(dir, "tls"), now).WriteKubeconfig(access.Admin{Path: path, ServerURL: "https://127.0.0.1:1", Lifetime: test.first}, now); err != nil {
				t.Fatal(err)
			}
			before, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if test.otherCA {
				remove(t, filepath.Join(dir, "tls", "client-ca.crt"))
				remove(t, filepath.Join(dir, "tls", "client-ca.key"))
			}
			at := now.Add(test.later)
			again := access.Admin{Path: path, ServerURL: "https://127.0.0.1:1", Lifetime: test.then, Replace: test.replace}
			if err := openCerts(t, filepath.Join(dir, "tls"), at).WriteKubeconfig(again, at); err != nil {
				t.Fatal(err)
			}
			after, err := os.Stat(path)
			if err != nil || os.SameFile(before, after) != test.same {
				t.Errorf("the same file: %t, want %t: %v", !test.same, test.same, err)
			}
			config, err := clientcmd.BuildConfigFromFlags("", path)
			if err != nil {
				t.Fatal(err)
			}
			pair, err := tls.X509KeyPair(config.CertData, config.KeyData)
			if err != nil {
				t.Fatal(err)
			}
			if left := pair.Leaf.NotAfter.Sub(at); left < test.then/3 || left > test.then {
				t.Errorf("%s are left of the certificate", left)
			}
		})
	}
}

func TestAnAdministratorRenewsTheKubeconfigOfAServerThatWasOff(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	path := filepath.Join(dir, "admin.kubeconfig")
	past := now.Add(-30 * 24 * time.Hour)
	if err := openCerts(t, filepath.Join(dir, "tls"), past).WriteKubeconfig(admin(path, "https://127.0.0.1:1"), past); err != nil {
		t.Fatal(err)
	}
	if err := access.RenewAdmin(dir, admin(path, ""), now); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(config.CertData, config.KeyData)
	if err != nil || config.Host != "https://127.0.0.1:1" || pair.Leaf.NotAfter.Before(now) {
		t.Errorf("host %s, until %s: %v", config.Host, pair.Leaf.NotAfter, err)
	}
	other := t.TempDir()
	if err := access.RenewAdmin(other, admin(path, ""), now); err == nil {
		t.Error("a kubeconfig was renewed for a directory without authorities")
	}
	if made, err := os.ReadDir(other); err != nil || len(made) > 0 {
		t.Errorf("in another directory: %v, %v", made, err)
	}
}

func TestDamagedAuthority(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, dir string){
		"certificate is gone": func(t *testing.T, dir string) { remove(t, filepath.Join(dir, "server-ca.crt")) },
		"key is gone":         func(t *testing.T, dir string) { remove(t, filepath.Join(dir, "client-ca.key")) },
		"not PEM": func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, "client-ca.crt"), []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"key of another": func(t *testing.T, dir string) {
			if err := os.Rename(filepath.Join(dir, "client-ca.key"), filepath.Join(dir, "server-ca.key")); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			openCerts(t, dir, time.Now())
			damage(t, dir)
			before := filesOf(t, dir)
			if _, err := access.OpenCertificates(dir, []string{"localhost"}, time.Now()); err == nil {
				t.Error("the directory was accepted")
			}
			if diff := cmp.Diff(before, filesOf(t, dir)); diff != "" {
				t.Errorf("an authority was replaced, so no certificate is valid any more (-before +after):\n%s", diff)
			}
		})
	}
}

// filesOf returns the content of the files of a directory, by name.
func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = string(content)
	}
	return files
}

func TestProviderRolesKeepStateFromViewers(t *testing.T) {
	for _, role := range access.ProviderRoles("sim", []string{"sim-networks"}) {
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				if resource == "*" || strings.HasSuffix(resource, "/state") && !strings.HasSuffix(role.Name, ":admin") {
					t.Errorf("role %s gives %s", role.Name, resource)
				}
			}
		}
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}
