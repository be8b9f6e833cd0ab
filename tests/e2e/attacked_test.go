package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/hykube/hykube/tests/harness"
	"github.com/hykube/hykube/tests/simcloud"
)

// attackers are the users of the attacks, with their groups in the token file. The members of editors may edit, those of
// approvers may approve, and those of writers may write policies, in all namespaces.
var attackers = map[string]string{
	"alice": "editors,approvers", "bob": "editors,approvers", "carol": "editors,approvers", "dan": "editors,approvers",
	"eve":  "editors",
	"paul": "editors,approvers,platform", "pia": "editors,approvers,platform",
	"olga": "editors,approvers,on-call", "lena": "editors,approvers,on-call",
	"dora": "approvers,writers", "lora": "writers",
}

// attackedServer is a server with the users, and the cloud of its provider.
type attackedServer struct {
	*harness.Server
	cloud  *harness.Cloud
	tokens string

	mu   sync.Mutex
	left []string
}

// attack is an attempt to evade a policy of the docs. objects are what an administrator applied before the policy; NS in
// them is the namespace.
type attack struct {
	name, objects string
	run           func(*attacked)
}

// attacked is a namespace in which an attack runs, with the policy.
type attacked struct {
	*testing.T
	server *attackedServer
	ns     string
	policy *unstructured.Unstructured
}

// TestPoliciesOfTheDocsHold runs attacks against each rule of each policy that the docs show, as the docs write it. A rule
// without an attack fails the test.
func TestPoliciesOfTheDocsHold(t *testing.T) {
	t.Parallel()
	documented := documentedPolicies(t)
	s := newAttackedServer(t)
	for rule := range policyAttacks {
		if documented[rule] == nil {
			t.Errorf("the docs have no policy %s", rule)
		}
	}
	number := 0
	for _, rule := range slices.Sorted(maps.Keys(documented)) {
		if len(policyAttacks[rule]) == 0 {
			t.Errorf("no attack on %s", rule)
		}
		for _, at := range policyAttacks[rule] {
			number++
			a := &attacked{server: s, ns: fmt.Sprintf("attack-%d", number), policy: documented[rule].DeepCopy()}
			t.Run(rule+"/"+at.name, func(t *testing.T) {
				t.Parallel()
				a.T = t
				a.prepare(at.objects)
				at.run(a)
			})
		}
	}
}

// documentedPolicies returns the policies in the pages of docs/, by PAGE: KIND/NAME/RULE.
func documentedPolicies(t *testing.T) map[string]*unstructured.Unstructured {
	t.Helper()
	const docs = "../../docs"
	found := map[string]*unstructured.Unstructured{}
	fence := regexp.MustCompile("(?ms)^```yaml[^\n]*\n(.*?)^```")
	err := filepath.WalkDir(docs, func(path string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		page, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, block := range fence.FindAllSubmatch(page, -1) {
			for document := range strings.SplitSeq(string(block[1]), "\n---\n") {
				if !strings.Contains(document, "PlanPolicy") {
					continue
				}
				p := &unstructured.Unstructured{}
				if err := yaml.Unmarshal([]byte(document), &p.Object); err != nil {
					return fmt.Errorf("%s: %w", path, err)
				}
				rules, _, _ := unstructured.NestedSlice(p.Object, "spec", "rules")
				for _, r := range rules {
					rule, _ := r.(map[string]any)
					found[fmt.Sprintf("%s: %s/%s/%s", strings.TrimPrefix(path, docs+"/"), p.GetKind(), p.GetName(), rule["name"])] = p
				}
			}
		}
		return nil
	})
	if err != nil || len(found) < 7 {
		t.Fatalf("the docs have the policies %v: %v", slices.Sorted(maps.Keys(found)), err)
	}
	return found
}

func newAttackedServer(t *testing.T) *attackedServer {
	t.Helper()
	s := &attackedServer{Server: &harness.Server{Dir: t.TempDir()}, cloud: harness.NewCloud(t, simcloud.Config{})}
	s.tokens = filepath.Join(s.Dir, "tokens.csv")
	s.writeTokens(t)
	s.Args, s.Env = []string{"--token-auth-file", s.tokens}, []string{"SIMCLOUD_ADDRESS=" + s.cloud.Address}
	s.Serve(t)
	if err := s.Install(t.Context(), harness.Provider{Name: "sim", Source: "hykube/sim", Environment: []string{"SIMCLOUD_ADDRESS"}}); err != nil {
		t.Fatal(err)
	}
	var bindings strings.Builder
	for group, role := range map[string]string{"editors": "edit", "approvers": "hykube:plan-approver", "writers": "hykube:plan-policy-editor"} {
		fmt.Fprintf(&bindings, "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: %s}\n"+
			"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %q}\nsubjects: [{kind: Group, name: %[1]s, apiGroup: rbac.authorization.k8s.io}]\n", group, role)
	}
	s.kubectl(t, bindings.String(), "create", "-f", "-")
	for user, resource := range map[string]string{"alice": "stacks", "dora": "planpolicies", "bob": "plans"} {
		must(t, harness.Within(30*time.Second, func() error {
			_, err := s.as(t, user).Resource(kschema.GroupVersionResource{Group: "hykube.io", Version: "v1alpha1", Resource: resource}).List(t.Context(), metav1.ListOptions{})
			return err
		}))
	}
	return s
}

// leave takes a user out of all groups but editors and approvers.
func (s *attackedServer) leave(t *testing.T, user string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = append(s.left, user)
	s.writeTokens(t)
}

// writeTokens writes the token file.
func (s *attackedServer) writeTokens(t *testing.T) {
	t.Helper()
	var file strings.Builder
	for _, user := range slices.Sorted(maps.Keys(attackers)) {
		groups := attackers[user]
		if slices.Contains(s.left, user) {
			groups = "editors,approvers"
		}
		fmt.Fprintf(&file, "%[1]s-token,%[1]s,%[1]s,%q\n", user, groups)
	}
	if err := os.WriteFile(s.tokens+".new", []byte(file.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(s.tokens+".new", s.tokens); err != nil {
		t.Fatal(err)
	}
}

// kubectl runs kubectl as the administrator.
func (s *attackedServer) kubectl(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	out, err := s.Kubectl(t.Context(), stdin, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// as returns a client with the token of a user.
func (s *attackedServer) as(t *testing.T, user string) dynamic.Interface {
	t.Helper()
	config, err := s.Config()
	if err != nil {
		t.Fatal(err)
	}
	config = rest.AnonymousClientConfig(config)
	config.BearerToken, config.QPS = user+"-token", -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// prepare makes the namespace, and applies the objects as the administrator.
func (a *attacked) prepare(objects string) {
	a.Helper()
	a.server.kubectl(a.T, fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %[1]s, labels: {stage: prod, attacked: %[1]s}}\n---\n"+
		"apiVersion: hykube.io/v1alpha1\nkind: ProviderConfig\nmetadata: {name: sim, namespace: %[1]s}\nspec: {provider: sim}\n", a.ns), "create", "-f", "-")
	if objects != "" {
		a.server.kubectl(a.T, a.text(objects), "hykube", "apply", "-n", a.ns, "--auto-approve", "-f", "-")
	}
}

func (a *attacked) text(s string) string { return strings.ReplaceAll(s, "NS", a.ns) }

// enforce writes the policy of the docs for the namespace, with replacements in its expressions. A ClusterPlanPolicy keeps
// its selector, and selects only this namespace.
func (a *attacked) enforce(replace ...string) { a.enforceAs("dora", replace...) }

func (a *attacked) enforceAs(author string, replace ...string) {
	a.Helper()
	a.write(author, func(rule map[string]any) {
		rule["when"] = strings.NewReplacer(replace...).Replace(rule["when"].(string))
	})
}

// enforceWith is enforce with an edit of each rule.
func (a *attacked) enforceWith(edit func(rule map[string]any)) {
	a.Helper()
	a.write("dora", edit)
}

func (a *attacked) write(author string, edit func(rule map[string]any)) {
	a.Helper()
	p := a.policy.DeepCopy()
	rules, _, _ := unstructured.NestedSlice(p.Object, "spec", "rules")
	for _, rule := range rules {
		edit(rule.(map[string]any))
	}
	must(a.T, unstructured.SetNestedSlice(p.Object, rules, "spec", "rules"))
	p.SetNamespace(a.ns)
	if p.GetKind() == "ClusterPlanPolicy" {
		p.SetNamespace("")
		p.SetName(p.GetName() + "-" + a.ns)
		must(a.T, unstructured.SetNestedField(p.Object, a.ns, "spec", "namespaceSelector", "matchLabels", "attacked"))
	}
	client := a.client(author, p)
	old, err := client.Get(a.Context(), p.GetName(), metav1.GetOptions{})
	if err == nil {
		p.SetResourceVersion(old.GetResourceVersion())
		_, err = client.Update(a.Context(), p, metav1.UpdateOptions{})
	} else if apierrors.IsNotFound(err) {
		_, err = client.Create(a.Context(), p, metav1.CreateOptions{})
	}
	must(a.T, err)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// client returns a user's client for the kind of an object, in the object's namespace or that of the attack.
func (a *attacked) client(user string, u *unstructured.Unstructured) dynamic.ResourceInterface {
	a.Helper()
	plural := strings.ToLower(u.GetKind()) + "s"
	if strings.HasSuffix(plural, "policys") {
		plural = strings.TrimSuffix(plural, "ys") + "ies"
	}
	of := a.server.as(a.T, user).Resource(u.GroupVersionKind().GroupVersion().WithResource(plural))
	if u.GetKind() == "ClusterPlanPolicy" {
		return of
	}
	if u.GetNamespace() != "" {
		return of.Namespace(u.GetNamespace())
	}
	return of.Namespace(a.ns)
}

// object returns an object of YAML.
func (a *attacked) object(text string) *unstructured.Unstructured {
	a.Helper()
	u := &unstructured.Unstructured{}
	must(a.T, yaml.Unmarshal([]byte(a.text(text)), &u.Object))
	return u
}

// creates lets a user create objects of YAML.
func (a *attacked) creates(user string, objects string) {
	a.Helper()
	for document := range strings.SplitSeq(objects, "\n---\n") {
		u := a.object(document)
		_, err := a.client(user, u).Create(a.Context(), u, metav1.CreateOptions{})
		must(a.T, err)
	}
}

// ref returns an object of the kinds of the attacks: KIND/NAME.
func ref(name string) *unstructured.Unstructured {
	kind, name, _ := strings.Cut(name, "/")
	u := &unstructured.Unstructured{}
	u.SetKind(kind)
	u.SetName(name)
	switch kind {
	case "ConfigMap":
		u.SetAPIVersion("v1")
	case "ResourceSet", "Plan", "Stack":
		u.SetAPIVersion("hykube.io/v1alpha1")
	default:
		u.SetAPIVersion("sim.hykube.io/v1")
	}
	return u
}

// patches lets a user patch KIND/NAME with a merge patch.
func (a *attacked) patches(user, name, patch string) {
	a.Helper()
	u := ref(name)
	_, err := a.client(user, u).Patch(a.Context(), u.GetName(), types.MergePatchType, []byte(a.text(patch)), metav1.PatchOptions{})
	must(a.T, err)
}

// deletes lets a user delete KIND/NAME.
func (a *attacked) deletes(user, name string) {
	a.Helper()
	u := ref(name)
	must(a.T, a.client(user, u).Delete(a.Context(), u.GetName(), metav1.DeleteOptions{}))
}

// taints lets a user taint KIND/NAME.
func (a *attacked) taints(user, name string) {
	a.Helper()
	u := ref(name)
	_, err := a.client(user, u).Create(a.Context(), u, metav1.CreateOptions{}, "taint")
	must(a.T, err)
}

// plans lets a user make a plan, and returns it when it waits for an approval, is refused or approved itself.
func (a *attacked) plans(user, spec string) *unstructured.Unstructured {
	a.Helper()
	u := a.object("apiVersion: hykube.io/v1alpha1\nkind: Plan\nmetadata: {generateName: p-}\nspec: {" + spec + "}")
	made, err := a.client(user, u).Create(a.Context(), u, metav1.CreateOptions{})
	must(a.T, err)
	return a.settled(made.GetName())
}

// settled waits until a plan waits for an approval, has no changes, is refused or approved.
func (a *attacked) settled(plan string) (made *unstructured.Unstructured) {
	a.Helper()
	must(a.T, harness.Within(time.Minute, func() (err error) {
		if made, err = a.get("Plan/" + plan); err != nil {
			return err
		}
		if slices.Contains([]string{"AwaitingApproval", "NoChanges"}, reason(made, "Ready")) || reason(made, "Stalled") != "" || planned(made) == "False" || decision(made) != "" {
			return nil
		}
		return fmt.Errorf("plan %s: %v", plan, made.Object["status"])
	}))
	return made
}

// get reads KIND/NAME as an editor.
func (a *attacked) get(name string) (*unstructured.Unstructured, error) {
	u := ref(name)
	return a.client("eve", u).Get(a.Context(), u.GetName(), metav1.GetOptions{})
}

// reason returns the reason of a condition of an object; "" without the condition, and for Stalled if it is false.
func reason(u *unstructured.Unstructured, of string) string {
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		if m, _ := c.(map[string]any); m["type"] == of && (of != "Stalled" || m["status"] == "True") {
			text, _ := m["reason"].(string)
			return text
		}
	}
	return ""
}

// decision returns the decision about a plan; "" if there is none.
func decision(plan *unstructured.Unstructured) string {
	text, _, _ := unstructured.NestedString(plan.Object, "status", "approval", "decision")
	return text
}

// approves lets a user approve a plan. It reports whether the plan is approved now, and what the server refuses.
func (a *attacked) approves(user string, plan *unstructured.Unstructured) (approved bool, err error) {
	a.Helper()
	client := a.client(user, ref("Plan/x"))
	digest, _, _ := unstructured.NestedString(plan.Object, "status", "digest")
	must(a.T, harness.Within(time.Minute, func() error {
		now, getErr := client.Get(a.Context(), plan.GetName(), metav1.GetOptions{})
		if getErr != nil {
			return getErr
		}
		now.Object["status"] = map[string]any{"approval": map[string]any{"decision": "Approved", "digest": digest}}
		now, err = client.Update(a.Context(), now, metav1.UpdateOptions{}, "approval")
		if err != nil && strings.Contains(err.Error(), "the object has been modified") {
			return err
		}
		approved = err == nil && decision(now) != ""
		return nil
	}))
	return approved, err
}

// waits fails the test if an approval of one of the users approves the plan.
func (a *attacked) waits(plan *unstructured.Unstructured, users ...string) {
	a.Helper()
	for _, user := range append([]string{""}, users...) {
		if user != "" {
			if approved, err := a.approves(user, plan); approved {
				a.Fatalf("%s approved %s: %v", user, plan.GetName(), err)
			}
		}
		now, err := a.get("Plan/" + plan.GetName())
		must(a.T, err)
		if decision(now) != "" {
			a.Fatalf("plan %s is approved after %q: %v", now.GetName(), user, now.Object["status"])
		}
	}
}

// refused is waits for a plan that a Deny refuses.
func (a *attacked) refused(plan *unstructured.Unstructured) {
	a.Helper()
	if reason(plan, "Stalled") != "PolicyDenied" {
		a.Errorf("plan %s is not refused: %v", plan.GetName(), plan.Object["status"])
	}
	a.waits(plan, "bob")
}

// applies lets a user approve a plan, and waits until it is applied.
func (a *attacked) applies(user string, plan *unstructured.Unstructured) {
	a.Helper()
	if approved, err := a.approves(user, plan); !approved {
		a.Fatalf("%s cannot approve %s: %v", user, plan.GetName(), err)
	}
	a.ends(plan, "Applied")
}

// ends waits until a plan ended with a reason.
func (a *attacked) ends(plan *unstructured.Unstructured, want string) {
	a.Helper()
	must(a.T, harness.Within(time.Minute, func() error {
		now, err := a.get("Plan/" + plan.GetName())
		if err == nil && reason(now, "Ready") != want {
			err = fmt.Errorf("plan %s: %v", plan.GetName(), now.Object["status"])
		}
		return err
	}))
}

// calls returns the number of calls of the cloud that changed something with a name.
func (a *attacked) calls(op, name string) int {
	a.Helper()
	n, err := a.server.cloud.CountCalls(context.WithoutCancel(a.Context()), simcloud.Filter{Op: op, Name: a.text(name), Effect: true})
	must(a.T, err)
	return n
}

// zoneOf returns an offset from UTC in which it is noon of a weekday now. Rules get it instead of their time zone.
func zoneOf(day time.Weekday) string {
	now := time.Now().UTC()
	return fmt.Sprintf("%+d:00", 24*(int(day)-int(now.Weekday()))+12-now.Hour())
}
