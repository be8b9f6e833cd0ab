package access_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/hykube/hykube/server/access"
)

// TestSystemNamesComeFromCertificates has a token file give away the server's own names. A certificate of the server's
// authority may have them.
func TestSystemNamesComeFromCertificates(t *testing.T) {
	dir := t.TempDir()
	certs := openCerts(t, filepath.Join(dir, "tls"), time.Now())
	ca, err := dynamiccertificates.NewDynamicCAContentFromFile("client-ca", certs.ClientCA())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "tokens.csv")
	if err := os.WriteFile(path, []byte(strings.Join([]string{
		`plain,alice,1,"dev,ops"`, `user,system:apiserver,2`, `group,mallory,3,"dev,system:masters"`, `node,mallory,4,"system:nodes"`, `authenticated,bob,5,"system:authenticated"`,
	}, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	auth, _, err := access.NewAuthenticator(t.Context(), access.AuthenticationConfig{ClientCA: ca, TokenFile: path, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	for token, want := range map[string]string{"plain": "alice", "user": "", "group": "", "node": "", "authenticated": "bob"} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		answer, ok, err := auth.AuthenticateRequest(r)
		switch {
		case ok != (want != ""):
			t.Errorf("token %q: %t, %v", token, ok, err)
		case ok && (answer.User.GetName() != want || !slices.Contains(answer.User.GetGroups(), "system:authenticated")):
			t.Errorf("token %q is %v", token, answer.User)
		case !ok && (err == nil || !strings.Contains(err.Error(), `"system:`) || strings.Contains(err.Error(), token+",")):
			t.Errorf("token %q: %v", token, err)
		}
	}
	now := time.Now()
	if err := certs.WriteKubeconfig(access.Admin{Path: filepath.Join(dir, "admin.kubeconfig"), ServerURL: "https://127.0.0.1:6443", Lifetime: access.AdminLifetime}, now); err != nil {
		t.Fatal(err)
	}
	admin, err := os.ReadFile(filepath.Join(dir, "admin.kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	carol, err := access.UserKubeconfig(dir, access.User{Name: "carol", Groups: []string{"platform"}, Expires: now.Add(time.Hour)}, now)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		kubeconfig  []byte
		name, group string
	}{{admin, "hykube:admin", "system:masters"}, {carol, "carol", "platform"}} {
		config, err := clientcmd.RESTConfigFromKubeConfig(test.kubeconfig)
		if err != nil {
			t.Fatal(err)
		}
		block, _ := pem.Decode(config.CertData)
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}}
		answer, ok, err := auth.AuthenticateRequest(r)
		if err != nil || !ok || answer.User.GetName() != test.name || !slices.Contains(answer.User.GetGroups(), test.group) || !slices.Contains(answer.User.GetGroups(), "system:authenticated") {
			t.Errorf("a certificate of %s: %v, %t, %v", test.name, answer, ok, err)
		}
	}
}
