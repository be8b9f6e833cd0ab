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
	// A client that checks the server is not deceived by another server's port either.
	config := engine.Config{DataDir: t.TempDir(), Address: other.Address(), Credentials: e.CredentialsFor(t)}
	deceived, err := engine.New(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := deceived.Start(ctx); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("got %v", err)
	}
}
