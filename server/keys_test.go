package server_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/hykube/hykube/server"
)

// TestEveryKindIsEncrypted writes a unique text into an object of each kind and looks for it in the files of the
// database.
func TestEveryKindIsEncrypted(t *testing.T) {
	dir := t.TempDir()
	s := startT(t, server.Config{DataDir: dir, Wire: testWiring})
	if err := s.awaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	client, ns := objects(t, s.admin()), "default"
	var kinds []string
	for _, k := range servedKinds(t, s.admin()) {
		if readOnly[k.String()] != "" || !k.has("create", "delete", "get") {
			continue
		}
		text := "unique-text-of-" + strings.ReplaceAll(k.String(), ".", "-")
		more := contents[k.String()]
		if strings.Contains(more, "%[1]q") {
			more = fmt.Sprintf(more, ns)
		}
		if more != "" {
			more = "," + more
		}
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,"metadata":{"name":"encrypted","annotations":{"example.com/text":%q}}%s}`,
			k.resource.GroupVersion(), k.kind, text, more)); err != nil {
			t.Fatal(err)
		}
		resource := client.Resource(k.resource)
		var err error
		if k.namespaced {
			_, err = resource.Namespace(ns).Create(t.Context(), u, metav1.CreateOptions{})
		} else {
			_, err = resource.Create(t.Context(), u, metav1.CreateOptions{})
		}
		if err != nil && !apierrors.IsAlreadyExists(err) { // both groups of events have the same objects
			t.Errorf("create %s: %v", k, err)
		}
		kinds = append(kinds, text)
	}
	if len(kinds) < 15 {
		t.Fatalf("only %d kinds", len(kinds))
	}
	files, err := filepath.Glob(filepath.Join(dir, "db", "state.db*"))
	if err != nil || len(files) < 2 {
		t.Fatalf("files %v: %v", files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range kinds {
			if bytes.Contains(data, []byte(text)) || bytes.Contains(data, []byte(base64.StdEncoding.EncodeToString([]byte(text)))) {
				t.Errorf("%s contains %q", filepath.Base(file), text)
			}
		}
	}
}

// askKeys sends a request to the keys' URL and returns the status.
func askKeys(t *testing.T, c *rest.Config, method, query string) (keys server.Keys, code int) {
	t.Helper()
	client, err := rest.HTTPClientFor(c)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), method, c.Host+server.RotateKeysPath+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode < 300 {
		if err := json.NewDecoder(response.Body).Decode(&keys); err != nil {
			t.Fatal(err)
		}
	}
	return keys, response.StatusCode
}

func TestKeysAreRotatedWhileServing(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "tokens.csv")
	if err := os.WriteFile(file, []byte(tokens), 0o600); err != nil {
		t.Fatal(err)
	}
	// No provider may read the root key, neither by its own path nor by a link.
	root, link := filepath.Join(dir, "root.key"), filepath.Join(dir, "link")
	if err := os.WriteFile(root, bytes.Repeat([]byte{7}, 32), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(root, link); err != nil {
		t.Fatal(err)
	}
	s := startT(t, server.Config{
		DataDir: filepath.Join(dir, "data"), TokenAuthFile: file, EncryptionKeyFile: link, RotationSettle: 50 * time.Millisecond,
		Wire: func(_ context.Context, h *server.Components) (server.Wiring, error) {
			if !slices.Contains(h.KeyFiles, root) || !slices.Contains(h.KeyFiles, link) {
				t.Errorf("protected from providers: %v", h.KeyFiles)
			}
			return server.Wiring{}, nil
		},
	})
	if err := s.awaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		if _, code := askKeys(t, s.as("editor"), method, "?encryption"); code != http.StatusForbidden {
			t.Errorf("%s by a user without a right: %d", method, code)
		}
	}
	if _, code := askKeys(t, s.admin(), http.MethodPost, ""); code != http.StatusBadRequest {
		t.Errorf("rotation of nothing: %d", code)
	}
	if _, code := askKeys(t, s.admin(), http.MethodDelete, ""); code != http.StatusMethodNotAllowed {
		t.Errorf("DELETE: %d", code)
	}
	before, code := askKeys(t, s.admin(), http.MethodGet, "")
	if code != http.StatusOK || len(before.Encryption.Keys) != 1 || len(before.Certificates) != 4 {
		t.Fatalf("keys %+v, %d", before, code)
	}
	was, kubeconfig := servingCertificate(t, s), s.admin()
	if _, code := askKeys(t, s.admin(), http.MethodPost, "?encryption&certificates"); code != http.StatusAccepted {
		t.Fatalf("rotation: %d", code)
	}
	eventually(t, "the rotation has finished", func() bool {
		keys, _ := askKeys(t, s.admin(), http.MethodGet, "")
		return !keys.Encryption.Rotating && keys.Encryption.Keys[0].ID != before.Encryption.Keys[0].ID
	})
	eventually(t, "the server serves with another certificate", func() bool { return !servingCertificate(t, s).Equal(was) })
	if bytes.Equal(s.admin().CertData, kubeconfig.CertData) {
		t.Error("admin.kubeconfig has the same certificate")
	}
	for name, c := range map[string]*rest.Config{"new": s.admin(), "old": kubeconfig} {
		if _, err := core(t, c).CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
			t.Errorf("with the %s certificate: %v", name, err)
		}
	}
}

func servingCertificate(t *testing.T, s *instance) *x509.Certificate {
	t.Helper()
	dialer := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
	connection, err := dialer.DialContext(t.Context(), "tcp", strings.TrimPrefix(s.URL(), "https://"))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	return connection.(*tls.Conn).ConnectionState().PeerCertificates[0]
}

// TestAServerRenewsTheAdministratorsCertificate runs longer than the certificate lives.
func TestAServerRenewsTheAdministratorsCertificate(t *testing.T) {
	s := startT(t, server.Config{DataDir: t.TempDir(), AdminLifetime: 3 * time.Second})
	if err := s.awaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	first := s.admin().CertData
	eventually(t, "another certificate is in admin.kubeconfig", func() bool { return !bytes.Equal(s.admin().CertData, first) })
	if _, err := core(t, s.admin()).CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}
