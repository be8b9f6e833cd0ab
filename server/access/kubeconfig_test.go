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
	for reason, test := range map[string]struct {
		user access.User
		dir  string
		want string
	}{
		"Kubernetes' administrators":      {access.User{Name: "a", Groups: []string{"system:masters"}, Expires: later}, dir, `group "system:masters": names that begin with "system:"`},
		"Kubernetes' own users":           {access.User{Name: "system:apiserver", Expires: later}, dir, `user "system:apiserver"`},
		"the server's own users":          {access.User{Name: "hykube:admin", Expires: later}, dir, `begin with "hykube:"`},
		"no name":                         {access.User{Expires: later}, dir, "a name must not be empty"},
		"a name that ends in a space":     {access.User{Name: "a ", Expires: later}, dir, "begin or end with a space"},
		"a name with a line break":        {access.User{Name: "a\nb", Expires: later}, dir, "must not contain control characters"},
		"an end that is over":             {access.User{Name: "a", Expires: now.Add(-time.Second)}, dir, "already be expired"},
		"an end after the authority's":    {access.User{Name: "a", Expires: now.AddDate(30, 0, 0), ServerURL: "https://x"}, dir, "authority expires before that"},
		"a directory that is no server's": {access.User{Name: "a", Expires: later}, t.TempDir(), "is not the data directory of a server"},
		"an address that is not known":    {access.User{Name: "a", Expires: later}, dir, "name it with --server"},
	} {
		if _, err := access.UserKubeconfig(test.dir, test.user, now); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", reason, err, test.want)
		}
	}
}
