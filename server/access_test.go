package server_test

import (
	"net/http"
	"os"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

func TestAnonymousRequestsAreRefused(t *testing.T) {
	for _, path := range []string{"/", "/api", "/apis", "/version", "/readyz", "/metrics", "/openapi/v3", "/temporal/", "/apis/hykube.io/v1alpha1/plans"} {
		if resp := anonymous(t, shared.URL()+path); resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("GET %s without credentials: status %d, want 401", path, resp.StatusCode)
		}
	}
}

func TestAuthentication(t *testing.T) {
	wrong := shared.as("viewer")
	wrong.BearerToken = "no-such-token"
	for name, test := range map[string]struct {
		config *rest.Config
		user   string // empty means refused
		group  string
	}{
		"administrator's certificate": {shared.admin(), "hykube:admin", "system:masters"},
		"token of the token file":     {shared.as("viewer"), "viewer", "readers"},
		"unknown token":               {wrong, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			review, err := core(t, test.config).AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
			if test.user == "" {
				if !apierrors.IsUnauthorized(err) {
					t.Fatalf("got %v, want Unauthorized", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if info := review.Status.UserInfo; info.Username != test.user || !strings.Contains(strings.Join(info.Groups, " "), test.group) {
				t.Errorf("user %q in groups %q, want %q in %q", info.Username, info.Groups, test.user, test.group)
			}
		})
	}
}

func TestKubeconfigIsPrivate(t *testing.T) {
	info, err := os.Stat(shared.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, want 0600", info.Mode().Perm())
	}
}

func TestRoleViewOfKubernetes(t *testing.T) {
	ns := namespace(t, "roles")
	viewer := objects(t, shared.as("viewer"))
	if _, err := viewer.Resource(plans).Namespace(ns).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Fatalf("list plans without any role: %v, want Forbidden", err)
	}
	if _, err := viewer.Resource(providers).List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("every user may see the providers: %v", err)
	}
	bind(t, ns, "view", "readers")
	eventually(t, "the role view lets its users list plans, by aggregation", func() bool {
		_, err := viewer.Resource(plans).Namespace(ns).List(t.Context(), metav1.ListOptions{})
		return err == nil
	})
	if _, err := viewer.Resource(plans).Namespace(ns).Create(t.Context(), newPlan("p", nil), metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("create plan as a viewer: %v, want Forbidden", err)
	}
	if _, err := core(t, shared.as("viewer")).CoreV1().Secrets(ns).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("list secrets as a viewer: %v, want Forbidden", err)
	}
}

// bind gives a cluster role in one namespace to a group.
func bind(t *testing.T, ns, role, group string) {
	t.Helper()
	bindOn(t, shared, ns, role, group)
}

func bindOn(t *testing.T, s *instance, ns, role, group string) {
	t.Helper()
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role + "-" + group},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: strings.ReplaceAll(role, ".", ":")},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group}},
	}
	if _, err := core(t, s.admin()).RbacV1().RoleBindings(ns).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// allow gives one verb on one resource of hykube.io in one namespace to a group.
func allow(t *testing.T, ns, name, group, resource, verb string) {
	t.Helper()
	allowOn(t, shared, ns, name, group, rbacv1.PolicyRule{APIGroups: []string{"hykube.io"}, Resources: []string{resource}, Verbs: []string{verb}})
}

// allowOn gives a rule in one namespace of a server to a group.
func allowOn(t *testing.T, s *instance, ns, name, group string, rule rbacv1.PolicyRule) {
	t.Helper()
	client := core(t, s.admin()).RbacV1()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{rule}}
	if _, err := client.Roles(ns).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group}},
	}
	if _, err := client.RoleBindings(ns).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}
