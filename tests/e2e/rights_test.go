package e2e

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

var updateRights = flag.Bool("update", false, "write the table of rights in docs/security.md anew")

// roles are the columns of the table. Each role has all rights of the roles before it in its chain.
var rightsRoles = []string{"none", "view", "edit", "admin", "approver", "record-deleter", "policy-editor", "cluster-admin"}

// rightsVerbs are the verbs that the test checks for every resource.
var rightsVerbs = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "use", "approve", "work", "escalate", "bind", "impersonate", "proxy"}

// bundles are sets of verbs with one name in the table.
var bundles = map[string][]string{
	"read":   {"get", "list", "watch"},
	"write":  {"create", "update", "patch", "delete", "deletecollection"},
	"decide": {"get", "update", "patch"},
	"purge":  {"delete", "deletecollection"},
}

// rightsRow has the verbs of each role on some resources. A role without an entry has no verb. The role none is a user
// without a role.
type rightsRow struct {
	// resources are RESOURCE.GROUP/SUBRESOURCE. KIND means each kind of each provider.
	resources string
	// may has names of bundles, or verbs. edit and admin also have the rights of view, and admin those of edit.
	may map[string]string
}

// rightsTable lists the verbs that each role must allow in its namespace.
var rightsTable = []rightsRow{
	{"KIND", map[string]string{"view": "read", "edit": "write"}},
	{"KIND/status", map[string]string{"view": "read"}},
	{"KIND/state", map[string]string{"admin": "get"}},
	{"KIND/taint", map[string]string{"edit": "create delete"}},
	{"KIND/resolve", map[string]string{"edit": "create"}},
	{"KIND/undelete", map[string]string{"edit": "create"}},
	{"providers.hykube.io", map[string]string{"none": "read"}},
	{"providers.hykube.io/status providers.hykube.io/undelete", nil},
	{"providerconfigs.hykube.io", map[string]string{"view": "read", "edit": "write use"}},
	{"providerconfigs.hykube.io/status", map[string]string{"view": "read"}},
	{"providerconfigs.hykube.io/undelete resourcesets.hykube.io/undelete modules.hykube.io/undelete", map[string]string{"edit": "create"}},
	{"plans.hykube.io", map[string]string{"view": "read", "edit": "write", "admin": "approve", "approver": "read approve"}},
	{"plans.hykube.io/status plans.hykube.io/changes", map[string]string{"view": "read", "approver": "read"}},
	{"plans.hykube.io/objects", map[string]string{"edit": "create"}},
	{"plans.hykube.io/approval", map[string]string{"admin": "decide", "approver": "decide"}},
	{"plans.hykube.io/cancel", map[string]string{"edit": "update"}},
	{"planrecords.hykube.io", map[string]string{"view": "read", "approver": "read", "record-deleter": "read purge"}},
	{"planpolicies.hykube.io", map[string]string{"view": "read", "approver": "read", "policy-editor": "read write"}},
	{"resources.hykube.io", map[string]string{"view": "read"}},
	{"resourcesets.hykube.io modules.hykube.io", map[string]string{"view": "read", "edit": "write"}},
	{"resourcesets.hykube.io/status resourcesets.hykube.io/instances modules.hykube.io/status modules.hykube.io/instances", map[string]string{"view": "read"}},
	{"resourcesets.hykube.io/scale", map[string]string{"view": "read", "edit": "update patch"}},
	{"stacks.hykube.io", map[string]string{"view": "read", "edit": "write"}},
	{"stacks.hykube.io/status", map[string]string{"view": "read"}},
	{"stacks.hykube.io/drift", map[string]string{"edit": "create"}},
	{"stacks.hykube.io/cancel", map[string]string{"edit": "create"}},
	{"stacks.hykube.io/takeover", map[string]string{"edit": "create"}},
	{"notifications.hykube.io", map[string]string{"view": "read", "edit": "write"}},
	{"notifications.hykube.io/status", map[string]string{"view": "read"}},
	{"workflows.hykube.io", map[string]string{"edit": "get list create update delete work"}},
	{"clusterplanpolicies.hykube.io", map[string]string{"none": "read", "policy-editor": "write"}},
	{"queries.hykube.io", map[string]string{"edit": "create"}},
	{"statepulls.hykube.io statepushes.hykube.io", map[string]string{"admin": "create"}},
	{"evaluations.hykube.io", map[string]string{"view": "create"}},
	{"validations.hykube.io", map[string]string{"none": "create"}},
	{"namespaces", map[string]string{"view": "read"}},
	{"namespaces/status namespaces/finalize namespaces/undelete", nil},
	{"secrets", map[string]string{"edit": "read write"}},
	{"configmaps", map[string]string{"view": "read", "edit": "write"}},
	{"secrets/undelete configmaps/undelete", map[string]string{"edit": "create"}},
	{"resourcequotas resourcequotas/status", map[string]string{"view": "read"}},
	{"events events.events.k8s.io", map[string]string{"view": "read"}},
	{"roles.rbac.authorization.k8s.io rolebindings.rbac.authorization.k8s.io", map[string]string{"admin": "read write"}},
	{"clusterroles.rbac.authorization.k8s.io clusterrolebindings.rbac.authorization.k8s.io", nil},
	{"localsubjectaccessreviews.authorization.k8s.io", map[string]string{"admin": "create"}},
	{"subjectaccessreviews.authorization.k8s.io tokenreviews.authentication.k8s.io", nil},
	{"selfsubjectaccessreviews.authorization.k8s.io selfsubjectrulesreviews.authorization.k8s.io selfsubjectreviews.authentication.k8s.io", map[string]string{"none": "create"}},
	{"apiservices.apiregistration.k8s.io", map[string]string{"none": "read"}},
	{"flowschemas.flowcontrol.apiserver.k8s.io prioritylevelconfigurations.flowcontrol.apiserver.k8s.io", nil},
	{"flowschemas.flowcontrol.apiserver.k8s.io/status prioritylevelconfigurations.flowcontrol.apiserver.k8s.io/status", nil},
}

// inherits returns the roles from which a role inherits rights.
var inherits = map[string][]string{"view": {"none"}, "edit": {"none", "view"}, "admin": {"none", "view", "edit"}, "approver": {"none"}, "record-deleter": {"none"}, "policy-editor": {"none"}}

// allowed returns the verbs of a role in a row.
func (r rightsRow) allowed(role string) []string {
	if role == "cluster-admin" {
		return rightsVerbs
	}
	var out []string
	for _, from := range append([]string{role}, inherits[role]...) {
		for word := range strings.FieldsSeq(r.may[from]) {
			if verbs, ok := bundles[word]; ok {
				out = append(out, verbs...)
			} else {
				out = append(out, word)
			}
		}
	}
	return out
}

// TestRightsTable asks a server about every role, verb and resource that it serves, and compares the answers with the
// table in docs/security.md. It fails if the table lacks a resource, or has one that the server does not serve.
func TestRightsTable(t *testing.T) {
	const namespace = "rights-table"
	config, err := shared.Config()
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	kubectl(t, "create", "namespace", namespace)
	t.Cleanup(func() { kubectlOf("delete", "namespace", namespace, "--wait=false") })
	for role, clusterRole := range map[string]string{"view": "view", "edit": "edit", "admin": "admin", "approver": "hykube:plan-approver", "record-deleter": "hykube:plan-record-deleter"} {
		kubectl(t, "create", "rolebinding", "table-"+role, "-n", namespace, "--clusterrole="+clusterRole, "--user=table-"+role)
	}
	for role, clusterRole := range map[string]string{"cluster-admin": "cluster-admin", "policy-editor": "hykube:plan-policy-editor"} {
		kubectl(t, "create", "clusterrolebinding", "table-"+role, "--clusterrole="+clusterRole, "--user=table-"+role)
	}
	t.Cleanup(func() { kubectlOf("delete", "clusterrolebinding", "table-cluster-admin", "table-policy-editor") })

	served := servedResources(t, client)
	rows := map[string]rightsRow{}
	for _, row := range rightsTable {
		for name := range strings.FieldsSeq(row.resources) {
			rows[name] = row
		}
	}
	for name := range rows {
		if !slices.ContainsFunc(slices.Collect(maps.Values(served)), func(row string) bool { return row == name }) {
			t.Errorf("the table has %q, and the server does not serve it", name)
		}
	}
	cells, mismatched := 0, 0
	var mu sync.Mutex
	var work sync.WaitGroup
	slots := make(chan struct{}, 16)
	for resource, name := range served {
		row, ok := rows[name]
		if !ok {
			t.Errorf("the server serves %q, and the table lacks it", resource)
			continue
		}
		for _, role := range rightsRoles {
			allowed := row.allowed(role)
			slots <- struct{}{}
			work.Go(func() {
				defer func() { <-slots }()
				for _, verb := range rightsVerbs {
					got, err := allows(t.Context(), client, namespace, role, verb, resource)
					mu.Lock()
					cells++
					if err != nil || got != slices.Contains(allowed, verb) {
						if mismatched++; mismatched <= 50 {
							t.Errorf("%s, %s %s: allowed %t, want %t (%v)", role, verb, resource, got, !got, err)
						}
					}
					mu.Unlock()
				}
			})
		}
	}
	work.Wait()
	for path := range servedPaths(t, client) {
		for _, role := range rightsRoles {
			cells++
			got, err := opens(t.Context(), client, role, path)
			if want := role == "cluster-admin" || isOpen(path); err != nil || got != want {
				mismatched++
				t.Errorf("%s, get %s: allowed %t, want %t (%v)", role, path, got, want, err)
			}
		}
	}
	t.Run("references", func(t *testing.T) { cells += testReferences(t, config) })
	if cells < 10_000 {
		t.Errorf("the table has only %d cells", cells)
	}
	t.Logf("%d cells, %d mismatched", cells, mismatched)

	const file, begin, end = "../../docs/security.md", "<!-- Table of rights: go test ./tests/e2e -run TestRightsTable -update -->\n", "<!-- End of the table of rights -->\n"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, ended := strings.Cut(rest, end)
	if !ok || !ended {
		t.Fatalf("%s has no place for the table", file)
	}
	want := before + begin + rightsMarkdown() + end + after
	if *updateRights {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(text) {
		t.Errorf("the table in %s is stale; run this test with -update", file)
	}
}

// servedResources returns all resources and subresources that a server announces, each with its name in the table.
// Aggregated discovery does not have all subresources of providers' kinds.
func servedResources(t *testing.T, client kubernetes.Interface) map[string]string {
	t.Helper()
	_, lists, err := client.Discovery().WithLegacy().ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	// Discovery does not name workflows: they are served by gRPC.
	served := map[string]string{"workflows.hykube.io": "workflows.hykube.io"}
	for _, list := range lists {
		group, _, versioned := strings.Cut(list.GroupVersion, "/")
		if !versioned {
			group = "" // the core group has only a version
		}
		for _, r := range list.APIResources {
			resource, sub, isSub := strings.Cut(r.Name, "/")
			full, row := resource, resource
			if group != "" {
				full += "." + group
				row = full
			}
			if strings.HasSuffix(group, ".hykube.io") {
				row = "KIND"
			}
			if isSub {
				full, row = full+"/"+sub, row+"/"+sub
			}
			served[full] = row
		}
	}
	return served
}

// isOpen reports whether every user may read a URL: discovery and health. All others require a role.
func isOpen(path string) bool {
	switch first, _, below := strings.Cut(strings.TrimPrefix(path, "/"), "/"); first {
	case "api", "apis", "openapi":
		return true
	case "version", "healthz", "livez", "readyz":
		return !below
	default:
		return false
	}
}

// servedPaths returns the URLs that a server lists at its root, and those of the Web UI, the metrics and the profiles.
func servedPaths(t *testing.T, client kubernetes.Interface) map[string]bool {
	t.Helper()
	index := struct{ Paths []string }{}
	raw, err := client.Discovery().RESTClient().Get().AbsPath("/").DoRaw(t.Context())
	if err == nil {
		err = json.Unmarshal(raw, &index)
	}
	if err != nil || len(index.Paths) < 10 {
		t.Fatalf("the server lists %q: %v", index.Paths, err)
	}
	served := map[string]bool{"/temporal/": true, "/temporal/namespaces": true, "/metrics": true, "/debug/pprof/heap": true, "/logs": true}
	for _, path := range index.Paths {
		served[path] = true
	}
	return served
}

// opens reports whether the user of a role may get a URL.
func opens(ctx context.Context, client kubernetes.Interface, role, path string) (bool, error) {
	review, err := client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: "table-" + role, Groups: []string{"system:authenticated"}, NonResourceAttributes: &authorizationv1.NonResourceAttributes{Verb: "get", Path: path},
	}}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return review.Status.Allowed, nil
}

// allows reports whether the user of a role has a right.
func allows(ctx context.Context, client kubernetes.Interface, namespace, role, verb, resource string) (bool, error) {
	full, sub, _ := strings.Cut(resource, "/")
	plural, group, _ := strings.Cut(full, ".")
	attributes := &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: verb, Group: group, Resource: plural, Subresource: sub, Name: "main"}
	switch plural {
	case "namespaces":
		attributes.Name = namespace
	case "providers", "clusterplanpolicies", "clusterroles", "clusterrolebindings", "subjectaccessreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews", "tokenreviews", "apiservices",
		"flowschemas", "prioritylevelconfigurations":
		attributes.Namespace = ""
	}
	review, err := client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: "table-" + role, Groups: []string{"system:authenticated"}, ResourceAttributes: attributes,
	}}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return review.Status.Allowed, nil
}

// rightsMarkdown returns the table as in docs/security.md. A column has only the rights that its role does not inherit.
func rightsMarkdown() string {
	var b strings.Builder
	b.WriteString("| resource | every user | `view` | also `edit` | also `admin` | `hykube:plan-approver` | `hykube:plan-record-deleter` | `hykube:plan-policy-editor` |\n|---|---|---|---|---|---|---|---|\n")
	for _, row := range rightsTable {
		var names []string
		for name := range strings.FieldsSeq(row.resources) {
			names = append(names, "`"+strings.Replace(name, "KIND", "<plural>.<provider>.hykube.io", 1)+"`")
		}
		fmt.Fprintf(&b, "| %s |", strings.Join(names, ", "))
		for _, role := range rightsRoles[:len(rightsRoles)-1] {
			fmt.Fprintf(&b, " %s |", strings.Join(strings.Fields(row.may[role]), ", "))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// kubectlOf runs kubectl after a test, when it can no longer report an error.
func kubectlOf(args ...string) {
	_, _ = shared.Kubectl(context.Background(), "", args...)
}
