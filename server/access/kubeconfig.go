package access

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	clientcmd "k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// User is the user of a client certificate.
type User struct {
	Name   string
	Groups []string
	// Expires is the expiry time of the certificate.
	Expires time.Time
	// ServerURL is the URL of the server; empty means the URL in the administrator's kubeconfig.
	ServerURL string
	// Namespace is the namespace of the kubeconfig's context.
	Namespace string
}

// Validate returns an error for an invalid user. It does not read the data directory. A certificate cannot be revoked,
// so users cannot get certificates for the names of systemPrefixes. Only the server creates one, that of the
// administrator.
func (u User) Validate(now time.Time) error {
	for _, n := range append([]string{u.Name}, u.Groups...) {
		what := "group"
		if n == u.Name {
			what = "user"
		}
		switch {
		case strings.TrimSpace(n) != n || n == "":
			return fmt.Errorf("%s %q: a name must not be empty, or begin or end with a space", what, n)
		case strings.ContainsFunc(n, unicode.IsControl):
			return fmt.Errorf("%s %q: a name must not contain control characters", what, n)
		}
		for _, prefix := range systemPrefixes {
			if strings.HasPrefix(n, prefix) {
				return fmt.Errorf("%s %q: names that begin with %q belong to the server itself. Bind a role to a name of your own; admin.kubeconfig is for administrators", what, n, prefix)
			}
		}
	}
	if !u.Expires.After(now) {
		return errors.New("the certificate would already be expired: choose a later end")
	}
	return nil
}

// UncertifiedHost returns the host of a server's URL if the serving certificate in a data directory does not have it.
// Otherwise, and without a URL or a certificate, it returns "".
func UncertifiedHost(dataDir, serverURL string) string {
	u, err := url.Parse(serverURL)
	if err != nil || u.Hostname() == "" {
		return ""
	}
	c := &Certificates{dir: filepath.Join(dataDir, "tls")}
	pair, err := readPair(c.ServingCert(), c.ServingKey())
	if err != nil || pair.cert.VerifyHostname(u.Hostname()) == nil {
		return ""
	}
	return u.Hostname()
}

// UserKubeconfig creates a key and a client certificate for a user with the authorities in dataDir, and returns a
// kubeconfig with them. It fails if there are no authorities.
func UserKubeconfig(dataDir string, u User, now time.Time) ([]byte, error) {
	if err := u.Validate(now); err != nil {
		return nil, err
	}
	server, client, err := readAuthorities(dataDir)
	if err != nil {
		return nil, err
	}
	return userKubeconfig(dataDir, u, server, client, now)
}

// readAuthorities reads the authorities of the server's certificate and of the users' certificates.
func readAuthorities(dataDir string) (server, client *authority, err error) {
	dir := filepath.Join(dataDir, "tls")
	if server, err = readPair(filepath.Join(dir, "server-ca.crt"), filepath.Join(dir, "server-ca.key")); err == nil {
		client, err = readPair(filepath.Join(dir, "client-ca.crt"), filepath.Join(dir, "client-ca.key"))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("%q is not the data directory of a server: it has no certificate authorities; name it with --data-dir, on the server's machine", dataDir)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read certificate authorities: %w", err)
	}
	return server, client, nil
}

func userKubeconfig(dataDir string, u User, server, client *authority, now time.Time) ([]byte, error) {
	if u.Expires.After(client.cert.NotAfter) {
		return nil, fmt.Errorf("the certificate authority expires before that, on %s: choose an earlier end",
			client.cert.NotAfter.Format(time.DateOnly))
	}
	if u.ServerURL == "" {
		admin, err := clientcmd.LoadFromFile(AdminPath(dataDir))
		if err != nil {
			return nil, fmt.Errorf("read the server's address from admin.kubeconfig: %w; name it with --server", err)
		}
		if c := admin.Clusters[adminName]; c != nil {
			u.ServerURL = c.Server
		}
	}
	certPEM, keyPEM, err := issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: u.Name, Organization: u.Groups},
		NotBefore:   now.Add(-backdate),
		NotAfter:    u.Expires,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, client)
	if err != nil {
		return nil, fmt.Errorf("create certificate of user %q: %w", u.Name, err)
	}
	const cluster = "hykube"
	context := u.Name + "@" + cluster
	return clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{cluster: {Server: u.ServerURL,
			CertificateAuthorityData: server.certPEM}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{u.Name: {ClientCertificateData: certPEM,
			ClientKeyData: keyPEM}},
		Contexts: map[string]*clientcmdapi.Context{context: {Cluster: cluster, AuthInfo: u.Name,
			Namespace: u.Namespace}},
		CurrentContext: context,
	})
}
