package storage

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	kmsservice "k8s.io/kms/pkg/service"

	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/apiserver/pkg/storage/value/encrypt/aes"
)

// plugin is a KMS v2 plugin. Each of its keys is a file in dir; the file "current" names the one that encrypts.
type plugin struct{ dir string }

func (p plugin) key(id string) (value.Transformer, error) {
	key, err := os.ReadFile(filepath.Join(p.dir, id))
	if err != nil {
		return nil, err
	}
	return aes.NewHKDFExtendedNonceGCMTransformer(key)
}

func (p plugin) current() (string, error) {
	id, err := os.ReadFile(filepath.Join(p.dir, "current"))
	return string(id), err
}

func (p plugin) Encrypt(ctx context.Context, _ string, data []byte) (*kmsservice.EncryptResponse, error) {
	id, err := p.current()
	if err != nil {
		return nil, err
	}
	key, err := p.key(id)
	if err != nil {
		return nil, err
	}
	sealed, err := key.TransformToStorage(ctx, data, value.DefaultContext(id))
	return &kmsservice.EncryptResponse{Ciphertext: sealed, KeyID: id}, err
}

func (p plugin) Decrypt(ctx context.Context, _ string, r *kmsservice.DecryptRequest) ([]byte, error) {
	key, err := p.key(r.KeyID)
	if err != nil {
		return nil, err
	}
	data, _, err := key.TransformFromStorage(ctx, r.Ciphertext, value.DefaultContext(r.KeyID))
	return data, err
}

func (p plugin) Status(context.Context) (*kmsservice.StatusResponse, error) {
	id, err := p.current()
	return &kmsservice.StatusResponse{Version: "v2", Healthz: "ok", KeyID: id}, err
}

// servePlugin serves a plugin until the process is killed.
func servePlugin(dir string) {
	panic(kmsservice.NewGRPCService(filepath.Join(dir, "socket"), time.Second, plugin{dir}).ListenAndServe())
}

// startPlugin starts a plugin process. Its socket exists when it returns.
func startPlugin(t *testing.T, dir string) (stop func()) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "HYKUBE_TEST_KMS="+dir)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "socket")
	eventually(t, "the plugin serves", func() bool {
		_, err := os.Stat(socket)
		return err == nil
	})
	return func() {
		t.Helper()
		if err := errors.Join(cmd.Process.Kill(), os.Remove(socket)); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
	}
}

func addPluginKey(t *testing.T, dir, id string) {
	t.Helper()
	key := make([]byte, keyBytes)
	rand.Read(key)
	for name, data := range map[string][]byte{id: key, "current": []byte(id)} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// pluginConfig writes an EncryptionConfiguration that uses the plugin for resources.
func pluginConfig(t *testing.T, dir, resources string) string {
	t.Helper()
	file := filepath.Join(dir, "config.yaml")
	// The name of a plugin must be unique in a process.
	writeKey(t, file, fmt.Sprintf(`apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [%q]
  providers:
  - kms: {apiVersion: v2, name: %s, endpoint: "unix://%s", timeout: 1s}
`, resources, strings.ToLower(filepath.Base(filepath.Dir(dir))), filepath.Join(dir, "socket")), 0o600)
	return file
}

// shortDir returns a directory whose path fits into the address of a socket.
func shortDir(t *testing.T) string {
	t.Helper()
	parent, err := os.MkdirTemp("", "kms")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(parent) })
	dir := filepath.Join(parent, "p")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestKMSPlugin(t *testing.T) {
	t.Parallel()
	for name, resources := range map[string]string{
		"of the data keys":     keyringResource.String(),
		"of every row":         "*.*",
		"of the ledger's rows": ledgerResource.String(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, kms := t.TempDir(), shortDir(t)
			addPluginKey(t, kms, "one")
			stop := startPlugin(t, kms)
			config := Config{DataDir: dir, EncryptionConfig: pluginConfig(t, kms, resources)}
			s := openAt(t, config)
			fill(t, s, 3)
			if _, err := os.Stat(filepath.Join(dir, ownKeyFile)); (err == nil) != (resources == ledgerResource.String()) {
				t.Errorf("key file in the data directory: %v", err)
			}
			// Without the plugin, the server continues, because it has the keys in memory.
			if len(s.HealthChecks()) != 1 {
				t.Fatalf("%d health checks", len(s.HealthChecks()))
			}
			stop()
			checkRecords(t, s, 3)
			if _, err := s.KV().Put(t.Context(), "meanwhile", []byte("x"), 0); err != nil {
				t.Errorf("write without the plugin: %v", err)
			}
			if resources == keyringResource.String() { // once, because Kubernetes keeps an answer of the plugin for 20 seconds
				unhealthy(t, s, true)
			}
			stop = startPlugin(t, kms)
			unhealthy(t, s, false)
			// The plugin has a new key. After a rotation, no row needs the old one.
			addPluginKey(t, kms, "two")
			closeStore(t, s)
			s = openAt(t, config)
			checkRecords(t, s, 3)
			if err := s.RotateKeys(t.Context()); err != nil {
				t.Fatal(err)
			}
			finishRotation(t, s)
			closeStore(t, s)
			remove(t, filepath.Join(kms, "one"))
			s = openAt(t, config)
			checkRecords(t, s, 3)
			closeStore(t, s)
			stop()
		})
	}
}

// unhealthy waits until the plugin is unhealthy, or healthy.
func unhealthy(t *testing.T, s *Store, want bool) {
	t.Helper()
	eventually(t, fmt.Sprintf("unhealthy is %t", want), func() bool {
		return (s.HealthChecks()[0].Check(httptest.NewRequest("GET", "/readyz", nil)) != nil) == want
	})
}

// TestAServerWaitsForItsKMSPlugin starts a server before its plugin, and one whose plugin never starts.
func TestAServerWaitsForItsKMSPlugin(t *testing.T) {
	t.Parallel()
	dir, kms := t.TempDir(), shortDir(t)
	addPluginKey(t, kms, "one")
	config := Config{DataDir: dir, EncryptionConfig: pluginConfig(t, kms, "*.*"), ProvidersTimeout: time.Second}
	if s, err := Open(t.Context(), config); err == nil {
		closeStore(t, s)
		t.Fatal("the server starts without its plugin")
	} else if !strings.Contains(err.Error(), "the KMS plugin did not answer within 1s; start it, then the server") || !strings.Contains(err.Error(), kms) {
		t.Errorf("got %v", err)
	}
	config.ProvidersTimeout = 0
	opened := make(chan *Store)
	go func() {
		s, err := Open(t.Context(), config)
		if err != nil {
			t.Error(err)
		}
		opened <- s
	}()
	stop := startPlugin(t, kms)
	if s := <-opened; s != nil {
		fill(t, s, 1)
		closeStore(t, s)
	}
	stop()
}
