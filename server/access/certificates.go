package access

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	clientcmd "k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/hykube/hykube/internal/atomicfile"
)

// Certificates manages the certificates of the server and its clients in one directory.
type Certificates struct {
	dir      string
	hosts    []string
	serverCA *authority
	clientCA *authority
}

// OpenCertificates reads the server's certificates from dir. It creates those that are missing, expire soon, or lack
// one of hosts, the names and IP addresses of the server.
func OpenCertificates(dir string, hosts []string, now time.Time) (*Certificates, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create directory for certificates: %w", err)
	}
	c := &Certificates{dir: dir, hosts: slices.Compact(slices.Sorted(slices.Values(hosts)))}
	var err error
	// Two authorities, so that the authority of the server's certificate can never authenticate a user.
	if c.serverCA, err = loadAuthority(dir, "server-ca", "hykube-server-ca", now); err != nil {
		return nil, err
	}
	if c.clientCA, err = loadAuthority(dir, "client-ca", "hykube-client-ca", now); err != nil {
		return nil, err
	}
	_, err = c.Renew(now, false)
	return c, err
}

// ServingCert returns the path of the serving certificate.
func (c *Certificates) ServingCert() string { return filepath.Join(c.dir, "serving.crt") }

// ServingKey returns the path of the serving certificate's key.
func (c *Certificates) ServingKey() string { return filepath.Join(c.dir, "serving.key") }

// ClientCA returns the path of the authority for client certificates.
func (c *Certificates) ClientCA() string { return filepath.Join(c.dir, "client-ca.crt") }

// ServerCA returns the PEM of the authority for the serving certificate.
func (c *Certificates) ServerCA() []byte { return c.serverCA.certPEM }

// Renew replaces the serving certificate if it expires soon or lacks one of the server's addresses, or if replace is
// true.
func (c *Certificates) Renew(now time.Time, replace bool) (renewed bool, err error) {
	pair, err := readPair(c.ServingCert(), c.ServingKey())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("read serving certificate: %w", err)
	}
	if err == nil && !replace && c.servingCertGood(pair.cert, now) {
		return false, nil
	}
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: "hykube"},
		NotBefore:   now.Add(-backdate),
		NotAfter:    now.Add(certificateLifetime),
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, host := range c.hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	certPEM, keyPEM, err := issue(template, c.serverCA)
	if err == nil {
		err = writePair(c.ServingCert(), c.ServingKey(), certPEM, keyPEM)
	}
	if err != nil {
		return false, fmt.Errorf("create serving certificate: %w", err)
	}
	return true, nil
}

func (c *Certificates) servingCertGood(cert *x509.Certificate, now time.Time) bool {
	if now.Before(cert.NotBefore) || now.Add(renewBefore).After(cert.NotAfter) ||
		cert.CheckSignatureFrom(c.serverCA.cert) != nil {
		return false
	}
	for _, host := range c.hosts {
		if cert.VerifyHostname(host) != nil {
			return false
		}
	}
	return true
}

// adminName is the name of the cluster, user and context in the administrator's kubeconfig.
const adminName = "hykube"

// AdminLifetime is the default lifetime of the administrator's certificate. It is short, because a certificate cannot
// be revoked.
const AdminLifetime = 7 * 24 * time.Hour

// AdminPath returns the path of the administrator's kubeconfig in a data directory.
func AdminPath(dataDir string) string { return filepath.Join(dataDir, "admin.kubeconfig") }

// Admin describes the administrator's kubeconfig.
type Admin struct {
	// Path is the path of the kubeconfig.
	Path string
	// ServerURL is the URL of the server; empty keeps the URL in an existing kubeconfig.
	ServerURL string
	// Lifetime is the lifetime of a new certificate.
	Lifetime time.Duration
	// Replace replaces the certificate also if it is valid long enough.
	Replace bool
}

// WriteKubeconfig writes the kubeconfig (mode 0600) of the first administrator, with a client certificate in the group
// system:masters. From an existing file, it keeps the user's settings, such as the context's namespace. It keeps
// the certificate while a third of its lifetime is left. It does not touch a file that needs no change.
func (c *Certificates) WriteKubeconfig(a Admin, now time.Time) error {
	config, err := clientcmd.LoadFromFile(a.Path)
	if err != nil {
		config = clientcmdapi.NewConfig()
	}
	certPEM, keyPEM, ok := c.currentAdmin(config.AuthInfos[adminName], a.Lifetime, now)
	if !ok || a.Replace {
		certPEM, keyPEM, err = issue(&x509.Certificate{
			Subject:     pkix.Name{CommonName: "hykube:admin", Organization: []string{user.SystemPrivilegedGroup}},
			NotBefore:   now.Add(-backdate),
			NotAfter:    now.Add(a.Lifetime),
			KeyUsage:    x509.KeyUsageDigitalSignature,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		}, c.clientCA)
		if err != nil {
			return fmt.Errorf("create administrator's certificate: %w", err)
		}
	}
	if known := config.Clusters[adminName]; a.ServerURL == "" && known != nil {
		a.ServerURL = known.Server
	}
	if a.ServerURL == "" {
		return fmt.Errorf("read the server's address from %s: it has none; name it with --server", a.Path)
	}
	config.Clusters[adminName] = &clientcmdapi.Cluster{Server: a.ServerURL,
		CertificateAuthorityData: c.serverCA.certPEM}
	config.AuthInfos[adminName] = &clientcmdapi.AuthInfo{ClientCertificateData: certPEM, ClientKeyData: keyPEM}
	if config.Contexts[adminName] == nil {
		config.Contexts[adminName] = &clientcmdapi.Context{Namespace: "default"}
	}
	config.Contexts[adminName].Cluster, config.Contexts[adminName].AuthInfo = adminName, adminName
	if config.CurrentContext == "" {
		config.CurrentContext = adminName
	}
	data, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	if info, err := os.Stat(a.Path); err == nil && info.Mode().Perm() == 0o600 {
		if old, err := os.ReadFile(a.Path); err == nil && bytes.Equal(old, data) {
			return nil
		}
	}
	if err := atomicfile.Write(a.Path, data, 0o600); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}

// currentAdmin returns the administrator's certificate in an existing kubeconfig, if at least a third of lifetime is
// left and at most all of it.
func (c *Certificates) currentAdmin(admin *clientcmdapi.AuthInfo, lifetime time.Duration,
	now time.Time) (certPEM, keyPEM []byte, ok bool) {
	if admin == nil {
		return nil, nil, false
	}
	pair, err := parsePair(admin.ClientCertificateData, admin.ClientKeyData)
	if err != nil || pair.cert.CheckSignatureFrom(c.clientCA.cert) != nil {
		return nil, nil, false
	}
	if left := pair.cert.NotAfter.Sub(now); left < lifetime/3 || left > lifetime {
		return nil, nil, false
	}
	return admin.ClientCertificateData, admin.ClientKeyData, true
}

// RenewAdmin renews the certificate in the administrator's kubeconfig of a data directory. The server need not run.
// It fails if there are no authorities.
func RenewAdmin(dataDir string, a Admin, now time.Time) error {
	server, client, err := readAuthorities(dataDir)
	if err != nil {
		return err
	}
	a.Replace = true
	return (&Certificates{serverCA: server, clientCA: client}).WriteKubeconfig(a, now)
}

// Expiry returns when certificates expire, by their names.
func (c *Certificates) Expiry(kubeconfig string) (map[string]time.Time, error) {
	serving, err := readPair(c.ServingCert(), c.ServingKey())
	if err != nil {
		return nil, fmt.Errorf("read serving certificate: %w", err)
	}
	expiry := map[string]time.Time{
		"serving": serving.cert.NotAfter, "server authority": c.serverCA.cert.NotAfter,
		"client authority": c.clientCA.cert.NotAfter,
	}
	if config, err := clientcmd.LoadFromFile(kubeconfig); err == nil && config.AuthInfos[adminName] != nil {
		admin := config.AuthInfos[adminName]
		if pair, err := parsePair(admin.ClientCertificateData, admin.ClientKeyData); err == nil {
			expiry["administrator"] = pair.cert.NotAfter
		}
	}
	return expiry, nil
}
