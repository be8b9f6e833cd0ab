package server_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/tests/harness"
)

// TestWritesReturnNothingThatTheUserMayNotGet writes objects in every way, as a user with the verbs of writes only and as one
// who may also get the objects.
func TestWritesReturnNothingThatTheUserMayNotGet(t *testing.T) {
	ns := namespace(t, "unreadable")
	writes := []string{"create", "update", "patch", "delete", "deletecollection"}
	rules := func(verbs ...string) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"secrets", "configmaps", "secrets/undelete"}, Verbs: verbs},
			{APIGroups: []string{"hykube.io"}, Resources: []string{"stacks", "providerconfigs", "providerconfigs/status"}, Verbs: verbs},
			{APIGroups: []string{"sim.hykube.io"}, Resources: []string{"sim-networks", "sim-networks/status", "sim-networks/undelete"}, Verbs: verbs},
		}
	}
	for user, granted := range map[string][]rbacv1.PolicyRule{"viewer": rules(writes...), "editor": rules(append(writes, "get", "list")...)} {
		rbac := core(t, shared.admin()).RbacV1()
		if _, err := rbac.Roles(ns).Create(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: granted}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := rbac.RoleBindings(ns).Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: user},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	note := map[string]string{"note": "hidden"}
	if _, err := core(t, shared.admin()).CoreV1().Secrets(ns).Create(t.Context(),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: note}, StringData: map[string]string{"key": "hidden"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := core(t, shared.admin()).CoreV1().ConfigMaps(ns).Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: note}, Data: map[string]string{"key": "hidden"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	manifest := func(api, kind string, spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": api, "kind": kind,
			"metadata": map[string]any{"name": "a", "annotations": map[string]any{"note": "hidden"}}, "spec": spec}}
	}
	stack := manifest(v1alpha1.SchemeGroupVersion.String(), "Stack", map[string]any{"suspend": true})
	if _, err := objects(t, shared.admin()).Resource(v1alpha1.SchemeGroupVersion.WithResource("stacks")).Namespace(ns).Create(t.Context(), stack, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	network := manifest("sim.hykube.io/v1", "sim-network", map[string]any{"name": "hidden"})
	if _, err := objects(t, shared.admin()).Resource(schema.GroupVersionResource{Group: "sim.hykube.io", Version: "v1", Resource: "sim-networks"}).Namespace(ns).Create(t.Context(), network, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for user, reads := range map[string]bool{"viewer": false, "editor": true} {
		if err := harness.Within(deadline, func() error {
			return core(t, shared.as(user)).CoreV1().Secrets(ns).Delete(t.Context(), "a", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		}); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"/metadata/uid", "/metadata/name", "/metadata/resourceVersion", "/type", "/kind"} {
			for _, op := range []string{"copy", "move"} {
				body := fmt.Sprintf(`[{"op":%q,"from":"/data/key","path":%q}]`, op, path)
				answer, _ := rawWrite(t, shared.as(user), "PATCH", "/api/v1/namespaces/"+ns+"/secrets/a?dryRun=All", "application/json-patch+json", runtime.ContentTypeJSON, body)
				if refused := bytes.Contains(answer, []byte(`"code":403`)); refused == reads || !reads && bytes.Contains(answer, []byte("aGlkZGVu")) {
					t.Errorf("%s, who reads %t: %s: %s", user, reads, body, answer)
				}
			}
		}
	}
	for user, reads := range map[string]bool{"viewer": false, "editor": true} {
		if err := harness.Within(deadline, func() error {
			return core(t, shared.as(user)).CoreV1().Secrets(ns).Delete(t.Context(), "a", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		}); err != nil {
			t.Fatal(err)
		}
		for _, at := range []struct{ path, api, kind string }{
			{"/api/v1/namespaces/" + ns + "/secrets", "v1", "Secret"}, {"/api/v1/namespaces/" + ns + "/configmaps", "v1", "ConfigMap"},
			{"/apis/hykube.io/v1alpha1/namespaces/" + ns + "/stacks", "hykube.io/v1alpha1", "Stack"},
			{"/apis/sim.hykube.io/v1/namespaces/" + ns + "/sim-networks", "sim.hykube.io/v1", "sim-network"},
		} {
			applied := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":"a","labels":{"x":"y"}}}`, at.api, at.kind)
			for _, w := range []struct{ method, path, media, body string }{
				{"PATCH", "/a", "application/merge-patch+json", `{}`},
				{"PATCH", "/a?dryRun=All", "application/merge-patch+json", `{"metadata":{"labels":{"x":"y"}}}`},
				{"PATCH", "/a", "application/json-patch+json", `[]`},
				{"PATCH", "/a?fieldManager=t", "application/apply-patch+yaml", applied},
				{"PATCH", "/a?fieldManager=t&dryRun=All", "application/apply-patch+yaml", applied},
				{"DELETE", "/a?dryRun=All", "", ""},
				{"DELETE", "?dryRun=All", "", ""},
			} {
				for _, accept := range []string{runtime.ContentTypeJSON, runtime.ContentTypeYAML, "application/json;as=Table;g=meta.k8s.io;v=v1", runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON} {
					if at.api == "sim.hykube.io/v1" && strings.HasPrefix(accept, runtime.ContentTypeProtobuf) {
						continue
					}
					answer, warned := rawWrite(t, shared.as(user), w.method, at.path+w.path, w.media, accept, w.body)
					shows := bytes.Contains(answer, []byte("hidden")) || bytes.Contains(answer, []byte("aGlkZGVu"))
					gone := bytes.Contains(answer, []byte("Status")) // the answer to the delete of one object has none
					switch {
					case gone && !shows:
					case shows && !reads, warned == reads:
						t.Errorf("%s as %s, who reads %t: %s %s%s: shows %t, warns %t: %s", accept, user, reads, w.method, at.kind, w.path, shows, warned, answer)
					case !reads && !bytes.Contains(answer, []byte(`"kind":"`+at.kind)):
						t.Errorf("%s %s%s: no answer of the kind: %s", w.method, at.kind, w.path, answer)
					}
				}
			}
		}
	}
	// A PUT that leaves a part out, as a status does, and the subresources.
	for _, w := range []struct{ method, path, media, body string }{
		{"PATCH", "/apis/sim.hykube.io/v1/namespaces/" + ns + "/sim-networks/a/status", "application/merge-patch+json", `{}`},
		{"DELETE", "/api/v1/namespaces/" + ns + "/secrets/a", "", ""},
	} {
		if answer, _ := rawWrite(t, shared.as("viewer"), w.method, w.path, w.media, runtime.ContentTypeJSON, w.body); bytes.Contains(answer, []byte("hidden")) || bytes.Contains(answer, []byte("aGlkZGVu")) {
			t.Errorf("%s %s: %s", w.method, w.path, answer)
		}
	}
	// Errors stay as they are.
	answer, warned := rawWrite(t, shared.as("viewer"), "PATCH", "/api/v1/namespaces/"+ns+"/secrets/none", "application/merge-patch+json", runtime.ContentTypeJSON, `{}`)
	if warned || !bytes.Contains(answer, []byte("not found")) {
		t.Errorf("got %s", answer)
	}
	// So does the answer to a create, all of which its user wrote.
	created, warned := rawWrite(t, shared.as("viewer"), "POST", "/api/v1/namespaces/"+ns+"/configmaps", runtime.ContentTypeJSON, runtime.ContentTypeJSON,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"mine"},"data":{"a":"written"}}`)
	if warned || !bytes.Contains(created, []byte("written")) {
		t.Errorf("got %s", created)
	}
}

// rawWrite sends a request and returns the body of the answer, and whether it has a warning about the missing right.
func rawWrite(t *testing.T, c *rest.Config, method, path, media, accept, body string) (answer []byte, warned bool) {
	t.Helper()
	client, err := kubernetes.NewForConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, c.Host+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", accept)
	if media != "" {
		req.Header.Set("Content-Type", media)
	}
	resp, err := client.CoreV1().RESTClient().(*rest.RESTClient).Client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if answer, err = io.ReadAll(resp.Body); err != nil {
		t.Fatal(err)
	}
	return answer, strings.Contains(strings.Join(resp.Header.Values("Warning"), " "), "you have no right to")
}
