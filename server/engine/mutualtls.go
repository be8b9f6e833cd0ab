package engine

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"time"

	"go.temporal.io/server/common/rpc/encryption"
)

// serverName is the name in the certificate of the embedded server.
const serverName = "temporal.hykube"

// mutualTLS authenticates the services of the embedded Temporal server and the client in this process. All of them
// share one key, which is generated at each start and stays in memory. Other processes on the machine can reach the
// ports but lack the key.
type mutualTLS struct {
	server, client *tls.Config
}

var _ encryption.TLSConfigProvider = (*mutualTLS)(nil)

func newMutualTLS() (*mutualTLS, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the key of the embedded Temporal server: %w", err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: serverName},
		DNSNames:              []string{serverName},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.AddDate(100, 0, 0), // longer than any process runs
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make the certificate of the embedded Temporal server: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("make the certificate of the embedded Temporal server: %w", err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	pair := []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key, Leaf: cert}}
	return &mutualTLS{
		server: &tls.Config{Certificates: pair, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"}},
		client: &tls.Config{Certificates: pair, RootCAs: pool, ServerName: serverName, MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"}},
	}, nil
}

func (m *mutualTLS) GetInternodeServerConfig() (*tls.Config, error) { return m.server, nil }

func (m *mutualTLS) GetInternodeClientConfig() (*tls.Config, error) { return m.client, nil }

func (m *mutualTLS) GetFrontendServerConfig() (*tls.Config, error) { return m.server, nil }

func (m *mutualTLS) GetFrontendClientConfig() (*tls.Config, error) { return m.client, nil }

func (m *mutualTLS) GetRemoteClusterClientConfig(string) (*tls.Config, error) { return m.client, nil }

func (m *mutualTLS) GetExpiringCerts(time.Duration) (expiring, expired encryption.CertExpirationMap, err error) {
	return nil, nil, nil
}
