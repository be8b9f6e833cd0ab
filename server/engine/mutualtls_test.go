package engine_test

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/hykube/hykube/server/engine"
)

// Another process of the machine finds the ports of the embedded server, and gets into none of them.
func TestEmbeddedServerTakesItsOwnClientAlone(t *testing.T) {
	e := start(t, engine.Config{DataDir: t.TempDir()})
	other := start(t, engine.Config{DataDir: t.TempDir()})
	foreign, err := tls.LoadX509KeyPair(other.CredentialsFor(t).CertFile, other.CredentialsFor(t).KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	ports := e.Ports()
	if len(ports) != 3 {
		t.Fatalf("ports %v", ports)
	}
	for name, config := range map[string]*tls.Config{
		"without TLS":                          nil,
		"without a certificate":                {InsecureSkipVerify: true},
		"with a certificate of another server": {InsecureSkipVerify: true, Certificates: []tls.Certificate{foreign}},
	} {
		for _, port := range ports {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			c, err := client.DialContext(ctx, client.Options{HostPort: net.JoinHostPort("127.0.0.1", port), Namespace: "hykube",
				ConnectionOptions: client.ConnectionOptions{TLS: config, GetSystemInfoTimeout: time.Second}})
			cancel()
			if err == nil {
				c.Close()
				t.Errorf("%s: port %s lets a stranger in", name, port)
			}
		}
	}
	// A client that checks the server is not deceived by another server's port either. A busy machine may not even end the
	// handshake in a second, and then the error does not name the certificate.
	for patience := time.Second; ; patience *= 2 {
		err := startDeceived(t, other.Address(), e.CredentialsFor(t), patience)
		if err != nil && strings.Contains(err.Error(), "certificate") {
			return
		}
		if err == nil || patience > 10*time.Second {
			t.Fatalf("within %s: got %v, want an error about the certificate", patience, err)
		}
	}
}

// startDeceived starts an engine with the credentials of one server and the address of another.
func startDeceived(t *testing.T, address string, credentials engine.Credentials, patience time.Duration) error {
	t.Helper()
	deceived, err := engine.New(engine.Config{DataDir: t.TempDir(), Address: address, Credentials: credentials})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return deceived.Start(ctx)
}
