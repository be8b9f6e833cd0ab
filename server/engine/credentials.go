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

// Credentials say how this server and an external Temporal cluster know each other. The zero value is TLS with the authorities that the
// machine trusts, and no proof of who this server is. The names are those of Temporal's own CLI.
type Credentials struct {
	// Plaintext does without TLS.
	Plaintext bool
	// CAFile is a PEM file with the authorities that vouch for the cluster; empty means those that the machine trusts.
	CAFile string
	// CertFile and KeyFile are PEM files with the client certificate of this server. They are read again for each connection.
	CertFile, KeyFile string
	// ServerName is the name in the cluster's certificate; empty means the host of its address.
	ServerName string
	// APIKeyFile is a file with an API key. It is read again for each call.
	APIKeyFile string
}

// Validate reads the files, and refuses settings that contradict each other.
func (c Credentials) Validate() error {
	var errs []error
	if c.Plaintext && c != (Credentials{Plaintext: true}) {
		errs = append(errs, errors.New("without TLS, a Temporal server takes no certificate and no API key: leave --temporal-tls=false out"))
	}
	if (c.CertFile == "") != (c.KeyFile == "") {
		errs = append(errs, errors.New("a client certificate for Temporal needs --temporal-tls-cert-file and --temporal-tls-key-file"))
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

// tls is nil for plain text.
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
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return c.certificate() }
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
		return nil, fmt.Errorf("read --temporal-tls-ca-file: %s holds no certificate in PEM form", c.CAFile)
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

// frontend is where and how the frontend of a Temporal server is reached.
type frontend struct {
	address, namespace string
	tls                *tls.Config // nil for plain text
	// apiKey returns the API key of a call; nil when calls have none.
	apiKey func(context.Context) (string, error)
}

// connect makes a connection for the Web UI; the SDK makes its own. It does not wait until the frontend answers.
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

// authenticate sets the headers that the SDK sets, too.
func (f frontend) authenticate(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	key, err := f.apiKey(ctx)
	if err != nil {
		return err
	}
	ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+key, "temporal-namespace", f.namespace)
	return invoke(ctx, method, request, reply, conn, options...)
}
