package server_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/hykube/hykube/server"
)

// TestRestart stops a server and starts another with its data. All objects exist, also at a new port.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	first := startT(t, server.Config{DataDir: dir})
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}, StringData: map[string]string{"k": "correct horse battery staple"}}
	if _, err := core(t, first.admin()).CoreV1().Secrets("default").Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	config := newObject("ProviderConfig", "c", map[string]any{"provider": "a", "config": map[string]any{"password": "hunter2-in-a-config"}})
	if _, err := objects(t, first.admin()).Resource(providerConfigs).Namespace("default").Create(t.Context(), config, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := objects(t, first.admin()).Resource(plans).Namespace("default").Create(t.Context(), newPlan("p", nil), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	services, err := objects(t, first.admin()).Resource(apiServices).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	provider := newObject("Provider", "restarted", map[string]any{"source": "hykube/restarted"})
	if _, err := objects(t, first.admin()).Resource(providers).Create(t.Context(), provider, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	before := first.admin()
	if err := first.stop(); err != nil {
		t.Fatalf("stop: %v", err)
	}
	for _, text := range []string{"correct horse battery staple", "Y29ycmVjdCBob3JzZSBiYXR0ZXJ5IHN0YXBsZQ", "hunter2-in-a-config"} {
		if where := find(t, dir, text); where != "" {
			t.Errorf("%q is readable in %s", text, where)
		}
	}

	second := startT(t, server.Config{DataDir: dir})
	got, err := core(t, second.admin()).CoreV1().Secrets("default").Get(t.Context(), "s", metav1.GetOptions{})
	if err != nil || string(got.Data["k"]) != "correct horse battery staple" {
		t.Errorf("secret after the restart: %v, %v", got.Data, err)
	}
	if _, err := objects(t, second.admin()).Resource(plans).Namespace("default").Get(t.Context(), "p", metav1.GetOptions{}); err != nil {
		t.Errorf("plan after the restart: %v", err)
	}
	// A client that was away for the restart still learns of the provider's kinds.
	w, err := objects(t, second.admin()).Resource(apiServices).Watch(t.Context(), metav1.ListOptions{ResourceVersion: services.GetResourceVersion()})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	select {
	case e := <-w.ResultChan():
		if e.Type != watch.Added {
			t.Errorf("a watch from before the restart: %s %v", e.Type, e.Object)
		}
	case <-time.After(deadline):
		t.Error("a watch from before the restart delivers nothing")
	}
	after := second.admin()
	if !bytes.Equal(before.CAData, after.CAData) || !bytes.Equal(before.CertData, after.CertData) {
		t.Error("the restart made new certificates, so that copies of the kubeconfig no longer work")
	}
}

// TestRefusals starts servers that must not start, and reads what they say.
// A provider that takes all its time to stop leaves the engine its own, and is no reason to end with an error.
func TestStopWithAStuckProvider(t *testing.T) {
	i, err := start(t.Context(), server.Config{DataDir: t.TempDir(), Wire: func(context.Context, *server.Components) (server.Wiring, error) {
		return server.Wiring{Close: func(ctx context.Context) error {
			<-ctx.Done()
			return errors.New("a call did not end in time")
		}}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := i.stop(); err != nil {
		t.Errorf("the server ended with %v", err)
	}
}

func TestRefusals(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	write := func(t *testing.T, dir, name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		prepare func(t *testing.T, dir string, c *server.Config)
		want    string
	}{
		"busy port": {
			func(_ *testing.T, _ string, c *server.Config) { c.SecurePort = busy.Addr().(*net.TCPAddr).Port },
			"the port is in use; choose another with --secure-port",
		},
		"foreign address": {
			func(_ *testing.T, _ string, c *server.Config) { c.BindAddress = net.IPv4(192, 0, 2, 1) },
			"this machine does not have that address",
		},
		"file instead of a directory": {
			func(t *testing.T, dir string, c *server.Config) {
				write(t, dir, "file", "")
				c.DataDir = filepath.Join(dir, "file")
			},
			"not a directory",
		},
		"directory of a newer version": {
			func(t *testing.T, dir string, _ *server.Config) { write(t, dir, "version", "999\n") },
			"a newer version of hykube wrote it",
		},
		"damaged version file": {
			func(t *testing.T, dir string, _ *server.Config) { write(t, dir, "version", "one") },
			"does not hold a number",
		},
		"directory that another server uses": {
			func(_ *testing.T, _ string, c *server.Config) { c.DataDir = filepath.Dir(shared.Kubeconfig()) },
			"another server uses it (process ",
		},
		"cut encryption key": {
			func(t *testing.T, dir string, _ *server.Config) { write(t, dir, "encryption.key", "\x01") },
			"restore it from a backup",
		},
		"missing encryption key file": {
			func(_ *testing.T, _ string, c *server.Config) { c.EncryptionKeyFile = "/no/such/file" },
			`read --encryption-key-file "/no/such/file": it does not exist`,
		},
		"unknown datastore": {
			func(_ *testing.T, _ string, c *server.Config) { c.DatastoreEndpoint = "redis://user:hunter2@host" },
			"unknown scheme",
		},
		"missing token file": {
			func(_ *testing.T, _ string, c *server.Config) { c.TokenAuthFile = "/no/such/file" },
			"read token file",
		},
		"missing encryption configuration": {
			func(_ *testing.T, _ string, c *server.Config) { c.EncryptionConfig = "/no/such/file" },
			"load encryption configuration",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			c := server.Config{DataDir: dir, BindAddress: net.IPv4(127, 0, 0, 1)}
			test.prepare(t, dir, &c)
			_, err := c.Complete(t.Context())
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v, want an error that says %q", err, test.want)
			}
			if strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error has more than one line, or a password: %v", err)
			}
		})
	}
}

func TestBadOptions(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*server.Options)
		want   string
	}{
		"address that is a name":       {func(o *server.Options) { o.BindAddress = "localhost" }, "--bind-address"},
		"port out of range":            {func(o *server.Options) { o.SecurePort = 70000 }, "--secure-port"},
		"temporal without a port":      {func(o *server.Options) { o.TemporalAddress = "host" }, "--temporal-address"},
		"credentials without temporal": {func(o *server.Options) { o.TemporalCredentials.CAFile = "ca.pem" }, "need --temporal-address"},
		"temporal without TLS, and a key": {func(o *server.Options) {
			o.TemporalAddress, o.TemporalTLS, o.TemporalCredentials.APIKeyFile = "host:7233", false, os.DevNull
		}, "leave --temporal-tls=false out"},
		"temporal's key without a certificate": {func(o *server.Options) { o.TemporalAddress, o.TemporalCredentials.KeyFile = "host:7233", "key.pem" }, "--temporal-tls-cert-file"},
		"temporal's authorities are no PEM":    {func(o *server.Options) { o.TemporalAddress, o.TemporalCredentials.CAFile = "host:7233", os.DevNull }, "no certificate in PEM form"},
		"temporal's API key is empty":          {func(o *server.Options) { o.TemporalAddress, o.TemporalCredentials.APIKeyFile = "host:7233", os.DevNull }, "is empty"},
		"no data directory":                    {func(o *server.Options) { o.DataDir = "" }, "--data-dir"},
		"audit of an impossible batch":         {func(o *server.Options) { o.Audit.LogOptions.Path, o.Audit.LogOptions.Format = "x", "poem" }, "audit"},
	} {
		t.Run(name, func(t *testing.T) {
			o := server.NewOptions()
			test.change(o)
			if err := o.Validate(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error about %s", err, test.want)
			}
		})
	}
	if err := server.NewOptions().Validate(); err != nil {
		t.Errorf("the defaults are not valid: %v", err)
	}
}

// find returns the file below dir that holds text; empty when none does.
func find(t *testing.T, dir, text string) (where string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if err == nil && bytes.Contains(data, []byte(text)) {
			where = path
			return fs.SkipAll
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return where
}

// TestAServerThatDoesNotStartKeepsTheKubeconfig starts a server with another key, on another port.
func TestAServerThatDoesNotStartKeepsTheKubeconfig(t *testing.T) {
	dir := t.TempDir()
	s, err := start(t.Context(), server.Config{DataDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(dir, "admin.kubeconfig")
	before, err := os.ReadFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "encryption.key"), bytes.Repeat([]byte("x"), 32), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := start(t.Context(), server.Config{DataDir: dir}); err == nil {
		_ = s.stop()
		t.Fatal("a server starts with a wrong key")
	}
	if after, err := os.ReadFile(kubeconfig); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the kubeconfig changed from\n%s\nto\n%s\n%v", before, after, err)
	}
}
