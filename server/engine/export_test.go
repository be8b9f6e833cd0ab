package engine

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Address is HOST:PORT of the frontend of an embedded server.
func (e *Engine) Address() string { return e.embedded.frontend }

// Ports are those of all services of an embedded server.
func (e *Engine) Ports() []string { return e.embedded.ports }

// CredentialsFor writes the keys of an embedded server to files, for a server that takes it for an external cluster.
func (e *Engine) CredentialsFor(t *testing.T) Credentials {
	t.Helper()
	c := Credentials{CAFile: filepath.Join(t.TempDir(), "ca.pem"), KeyFile: filepath.Join(t.TempDir(), "key.pem"), ServerName: serverName}
	c.CertFile = c.CAFile
	pair := e.embedded.keys.client.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{
		c.CAFile:  {Type: "CERTIFICATE", Bytes: pair.Certificate[0]},
		c.KeyFile: {Type: "PRIVATE KEY", Bytes: key},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// Terminate terminates the newest running executions above a limit.
func (u *UserNamespaces) Terminate(ctx context.Context, name string, limit int64) error {
	return u.stop(ctx, name, limit)
}

// Trim deletes the oldest finished executions above a limit.
func (u *UserNamespaces) Trim(ctx context.Context, name string, limit int64) error {
	return u.trim(ctx, name, limit)
}

// CleanAll cleans all namespaces once.
func (u *UserNamespaces) CleanAll(ctx context.Context) error { return u.cleanAll(ctx) }

// RunningExecutions is the maximum number of running executions of a namespace.
const RunningExecutions = runningExecutions

// ForgetCount makes the count of a namespace old.
func (u *UserNamespaces) ForgetCount(namespace string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	c := u.counts[namespace]
	c.at = time.Time{}
	u.counts[namespace] = c
}
