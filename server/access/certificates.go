package access

import (
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
	_, err = c.Renew(now)
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

// Renew replaces the serving certificate if it expires soon or lacks one of the server's addresses.
func (c *Certificates) Renew(now time.Time) (renewed bool, err error) {
	pair, err := readPair(c.ServingCert(), c.ServingKey())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("read serving certificate: %w", err)
	}
	if err == nil && c.servingCertGood(pair.cert, now) {
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
	if now.Before(cert.NotBefore) || now.Add(renewBefore).After(cert.NotAfter) || cert.CheckSignatureFrom(c.serverCA.cert) != nil {
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

// WriteKubeconfig writes the kubeconfig (mode 0600) of the first administrator, with a client certificate in the group
// system:masters. From an existing file, it keeps a certificate that is valid long enough, and the user's other
// settings, such as the context's namespace.
func (c *Certificates) WriteKubeconfig(path, serverURL string, now time.Time) error {
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		config = clientcmdapi.NewConfig()
	}
	certPEM, keyPEM, ok := c.currentAdmin(config.AuthInfos[adminName], now)
	if !ok {
		certPEM, keyPEM, err = issue(&x509.Certificate{
			Subject:     pkix.Name{CommonName: "hykube:admin", Organization: []string{user.SystemPrivilegedGroup}},
			NotBefore:   now.Add(-backdate),
			NotAfter:    now.Add(certificateLifetime),
			KeyUsage:    x509.KeyUsageDigitalSignature,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		}, c.clientCA)
		if err != nil {
			return fmt.Errorf("create administrator's certificate: %w", err)
		}
	}
	config.Clusters[adminName] = &clientcmdapi.Cluster{Server: serverURL, CertificateAuthorityData: c.serverCA.certPEM}
	config.AuthInfos[adminName] = &clientcmdapi.AuthInfo{ClientCertificateData: certPEM, ClientKeyData: keyPEM}
	if config.Contexts[adminName] == nil {
		config.Contexts[adminName] = &clientcmdapi.Context{Namespace: "default"}
	}
	config.Contexts[adminName].Cluster, config.Contexts[adminName].AuthInfo = adminName, adminName
	if config.CurrentContext == "" {
		config.CurrentContext = adminName
	}
	data, err := clientcmd.Write(*config)
	if err == nil {
		err = atomicfile.Write(path, data, 0o600)
	}
	if err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}

// currentAdmin returns the administrator's certificate in an existing kubeconfig, if it is valid long enough.
func (c *Certificates) currentAdmin(admin *clientcmdapi.AuthInfo, now time.Time) (certPEM, keyPEM []byte, ok bool) {
	if admin == nil {
		return nil, nil, false
	}
	pair, err := parsePair(admin.ClientCertificateData, admin.ClientKeyData)
	if err != nil || pair.cert.CheckSignatureFrom(c.clientCA.cert) != nil || !now.Add(renewBefore).Before(pair.cert.NotAfter) {
		return nil, nil, false
	}
	return admin.ClientCertificateData, admin.ClientKeyData, true
}
