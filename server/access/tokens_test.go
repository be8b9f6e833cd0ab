package access_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/server/access"
	"github.com/hykube/hykube/server/rights"
)

// locked is a log that a test reads while it is written.
type locked struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestTokenFileIsReadAgain(t *testing.T) {
	path, dir := filepath.Join(t.TempDir(), "tokens.csv"), t.TempDir()
	put := func(text string) {
		t.Helper()
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	put("one,alice,a\n")
	ca, err := dynamiccertificates.NewDynamicCAContentFromFile("client-ca", openCerts(t, dir, time.Now()).ClientCA())
	if err != nil {
		t.Fatal(err)
	}
	log, metrics := &locked{}, prometheus.NewRegistry()
	cfg := access.AuthenticationConfig{ClientCA: ca, TokenFile: path, Metrics: metrics, Logger: slog.New(slog.NewTextHandler(log, nil))}
	auth, _, err := access.NewAuthenticator(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	user := func(token string) string {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		answer, ok, _ := auth.AuthenticateRequest(r)
		if !ok {
			return ""
		}
		return answer.User.GetName()
	}
	broken := func() float64 {
		all, err := metrics.Gather()
		if err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		return all[0].GetMetric()[0].GetGauge().GetValue()
	}
	eventually := func(what string, ok func() bool) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("not in time: %s\n%s", what, log)
			}
		}
	}
	if user("one") != "alice" || broken() != 0 {
		t.Fatalf("alice is %q", user("one"))
	}
	put("two,bob,b\n")
	eventually("a new token is known, and the old one is not", func() bool { return user("two") == "bob" && user("one") == "" })

	put("three,carol,c\nbroken\n")
	eventually("a broken file is noticed", func() bool { return broken() == 1 })
	if user("two") != "bob" || user("three") != "" {
		t.Errorf("a broken file is taken in part: %q %q", user("two"), user("three"))
	}
	if !strings.Contains(log.String(), path) || strings.Contains(log.String(), "three") {
		t.Errorf("the log says:\n%s", log)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	put("four,dave,d\n")
	eventually("a good file is taken again", func() bool { return user("four") == "dave" && broken() == 0 })

	put("broken\n")
	if _, _, err := access.NewAuthenticator(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a server starts with a broken file: %v", err)
	}
}

// TestRightsFollowTheTokenFile asks for the rights of a user whom a plan recorded, after the token file has changed.
func TestRightsFollowTheTokenFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.csv")
	if err := os.WriteFile(path, []byte("one,alice,a,\"ops,dev\"\ntwo,bob,b,ops\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ca, err := dynamiccertificates.NewDynamicCAContentFromFile("client-ca", openCerts(t, t.TempDir(), time.Now()).ClientCA())
	if err != nil {
		t.Fatal(err)
	}
	auth, narrow, err := access.NewAuthenticator(t.Context(), access.AuthenticationConfig{ClientCA: ca, TokenFile: path, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	recorded := func(token string) v1alpha1.Identity {
		t.Helper()
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		answer, ok, err := auth.AuthenticateRequest(r)
		if !ok || err != nil {
			t.Fatalf("authenticate %s: %v, %v", token, ok, err)
		}
		return rights.IdentityOf(answer.User)
	}
	alice, bob := recorded("one"), recorded("two")
	client := fake.NewClientset(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "read"}, Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"configmaps"}}}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "ops"}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "read"}, Subjects: []rbacv1.Subject{{Kind: "Group", Name: "ops"}}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "all"}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "read"}, Subjects: []rbacv1.Subject{{Kind: "User", Name: "bob"}}})
	factory := informers.NewSharedInformerFactory(client, 0)
	authorizer, _ := access.NewAuthorizer(factory, narrow)
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	may := func(who v1alpha1.Identity) bool {
		t.Helper()
		ok, err := rights.Access{Authorizer: authorizer}.May(t.Context(), who, store.Right{Verb: "get", Namespace: "prod", Resource: "configmaps"})
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	certificate := v1alpha1.Identity{Username: "carol", Groups: []string{"ops"}}
	if !may(alice) || !may(bob) || !may(certificate) {
		t.Fatal("a user of the group lacks its right")
	}
	// alice leaves the group, and bob leaves.
	if err := os.WriteFile(path, []byte("one,alice,a,dev\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); may(alice) || may(bob); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("alice %t, bob %t: the rights of earlier groups and users remain", may(alice), may(bob))
		}
	}
	if !may(certificate) {
		t.Error("the token file decides about a user of a certificate")
	}
}
