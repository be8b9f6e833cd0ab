package engine

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
)

// Credentials configures the TLS and the authentication for an external Temporal cluster. The zero value uses TLS with
// the system's certificate authorities and no client authentication. The names are those of Temporal's CLI.
type Credentials struct {
	// Plaintext disables TLS.
	Plaintext bool
	// CAFile is a PEM file with the certificate authorities of the cluster; empty means those of the system.
	CAFile string
	// CertFile and KeyFile are PEM files with this server's client certificate. Each connection reads them again.
	CertFile, KeyFile string
	// ServerName is the name in the cluster's certificate; empty means the host in the address.
	ServerName string
	// APIKeyFile is a file with an API key. Each call reads it again.
	APIKeyFile string
}

// Validate reads the files and returns an error for contradicting settings.
func (c Credentials) Validate() error {
	var errs []error
	if c.Plaintext && c != (Credentials{Plaintext: true}) {
		errs = append(errs, errors.New(
			"without TLS, a Temporal server takes no certificate and no API key: leave --temporal-tls=false out"))
	}
	if (c.CertFile == "") != (c.KeyFile == "") {
		errs = append(errs, errors.New(
			"a client certificate for Temporal needs --temporal-tls-cert-file and --temporal-tls-key-file"))
	} else if _, err := c.certificate(); err != nil {
		errs = append(errs, err)
	}
	if _, err := c.authorities(); err != nil {
		errs = append(errs, err)
	}
	if c.APIKeyFile != "" {
		if _, err := c.apiKey(context.Background()); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// tls returns the TLS configuration; nil for plain text.
func (c Credentials) tls(address string) (*tls.Config, error) {
	if c.Plaintext {
		return nil, nil
	}
	pool, err := c.authorities()
	if err != nil {
		return nil, err
	}
	config := &tls.Config{RootCAs: pool, ServerName: c.ServerName, MinVersion: tls.VersionTLS12}
	if config.ServerName == "" {
		if config.ServerName, _, err = net.SplitHostPort(address); err != nil {
			return nil, fmt.Errorf("connect to Temporal at %q: %w", address, err)
		}
	}
	if c.CertFile != "" {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return c.certificate()
		}
	}
	return config, nil
}

func (c Credentials) authorities() (*x509.CertPool, error) {
	if c.CAFile == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(c.CAFile)
	if err != nil {
		return nil, fmt.Errorf("read --temporal-tls-ca-file: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("read --temporal-tls-ca-file: %s contains no certificate in PEM format", c.CAFile)
	}
	return pool, nil
}

func (c Credentials) certificate() (*tls.Certificate, error) {
	if c.CertFile == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("read the client certificate for Temporal: %w", err)
	}
	return &pair, nil
}

func (c Credentials) apiKey(context.Context) (string, error) {
	text, err := os.ReadFile(c.APIKeyFile)
	if err != nil {
		return "", fmt.Errorf("read --temporal-api-key-file: %w", err)
	}
	key := strings.TrimSpace(string(text))
	if key == "" {
		return "", fmt.Errorf("read --temporal-api-key-file: %s is empty", c.APIKeyFile)
	}
	return key, nil
}

// frontend defines the connection to the frontend of a Temporal server.
type frontend struct {
	address, namespace string
	tls                *tls.Config // nil for plain text
	// apiKey returns the API key for a call; nil if calls need none.
	apiKey func(context.Context) (string, error)
}

// connect opens a connection for the Web UI; the SDK opens its own. It does not wait for the frontend.
func (f frontend) connect() (*grpc.ClientConn, error) {
	transport := insecure.NewCredentials()
	if f.tls != nil {
		transport = credentials.NewTLS(f.tls)
	}
	options := []grpc.DialOption{grpc.WithTransportCredentials(transport)}
	if f.apiKey != nil {
		options = append(options, grpc.WithUnaryInterceptor(f.authenticate))
	}
	return grpc.NewClient(f.address, options...)
}

// authenticate sets the same headers as the SDK.
func (f frontend) authenticate(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn,
	invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	key, err := f.apiKey(ctx)
	if err != nil {
		return err
	}
	ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+key, "temporal-namespace", f.namespace)
	return invoke(ctx, method, request, reply, conn, options...)
}
