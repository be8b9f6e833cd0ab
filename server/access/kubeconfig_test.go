package access_test

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/hykube/hykube/server/access"
)

func TestUserKubeconfig(t *testing.T) {
	now, dir := time.Now(), t.TempDir()
	c := openCerts(t, filepath.Join(dir, "tls"), now)
	if err := c.WriteKubeconfig(access.Admin{Path: filepath.Join(dir, "admin.kubeconfig"), ServerURL: "https://127.0.0.1:6443", Lifetime: access.AdminLifetime}, now); err != nil {
		t.Fatal(err)
	}
	carol := access.User{Name: "carol", Groups: []string{"platform", "ops"}, Expires: now.Add(time.Hour), Namespace: "prod"}
	data, err := access.UserKubeconfig(dir, carol, now)
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(data)
	if err != nil || config.Host != "https://127.0.0.1:6443" || string(config.CAData) != string(c.ServerCA()) {
		t.Fatalf("%v, %v", config, err)
	}
	block, _ := pem.Decode(config.CertData)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if cert.Subject.CommonName != "carol" || strings.Join(cert.Subject.Organization, " ") != "ops platform" || cert.NotAfter.After(carol.Expires) || cert.IsCA {
		t.Errorf("a certificate for %v until %s", cert.Subject, cert.NotAfter)
	}
	roots := x509.NewCertPool()
	ca, err := os.ReadFile(c.ClientCA())
	if err != nil {
		t.Fatal(err)
	}
	roots.AppendCertsFromPEM(ca)
	if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		t.Error(err)
	}
	if again, err := access.UserKubeconfig(dir, carol, now); err != nil || string(again) == string(data) {
		t.Errorf("the key is not made fresh: %v", err)
	}
}

func TestUsersThatGetNoCertificate(t *testing.T) {
	now, dir := time.Now(), t.TempDir()
	openCerts(t, filepath.Join(dir, "tls"), now)
	later := now.Add(time.Hour)
	const address = "https://x"
	for reason, test := range map[string]struct {
		user access.User
		dir  string
	}{
		"Kubernetes' administrators":      {access.User{Name: "a", Groups: []string{"system:masters"}, Expires: later, ServerURL: address}, dir},
		"Kubernetes' own users":           {access.User{Name: "system:apiserver", Expires: later, ServerURL: address}, dir},
		"the server's own users":          {access.User{Name: "hykube:admin", Expires: later, ServerURL: address}, dir},
		"no name":                         {access.User{Expires: later, ServerURL: address}, dir},
		"a name that ends in a space":     {access.User{Name: "a ", Expires: later, ServerURL: address}, dir},
		"a name with a line break":        {access.User{Name: "a\nb", Expires: later, ServerURL: address}, dir},
		"an end that is over":             {access.User{Name: "a", Expires: now.Add(-time.Second), ServerURL: address}, dir},
		"an end after the authority's":    {access.User{Name: "a", Expires: now.AddDate(30, 0, 0), ServerURL: address}, dir},
		"a directory that is no server's": {access.User{Name: "a", Expires: later, ServerURL: address}, t.TempDir()},
		"an address that is not known":    {access.User{Name: "a", Expires: later}, dir},
	} {
		if _, err := access.UserKubeconfig(test.dir, test.user, now); err == nil {
			t.Errorf("%s: the user got a certificate", reason)
		}
	}
	// The table differs from this user in one point a row.
	if _, err := access.UserKubeconfig(dir, access.User{Name: "a", Expires: later, ServerURL: address}, now); err != nil {
		t.Error(err)
	}
}
