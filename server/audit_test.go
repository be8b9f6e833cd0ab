package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/audit"
	"github.com/hykube/hykube/server"
	"github.com/hykube/hykube/server/auditlog"
	"github.com/hykube/hykube/server/loopback"
	"github.com/hykube/hykube/server/storage"
)

// audited is a server with the default audit log.
type audited struct {
	*instance
	dir    string
	record audit.RecordFunc
	// configs reads as the server does for plans and users.
	configs *loopback.Configs
}

func startAudited(t *testing.T, change func(*server.Options)) *audited {
	t.Helper()
	a := &audited{dir: filepath.Join(t.TempDir(), "data")}
	o := server.NewOptions()
	if change != nil {
		change(o)
	}
	a.instance = startT(t, server.Config{DataDir: a.dir, Audit: o.Audit, Wire: func(ctx context.Context, h *server.Components) (server.Wiring, error) {
		a.record, a.configs = h.Record, &loopback.Configs{Core: kubernetes.NewForConfigOrDie(h.Loopback)}
		return testWiring(ctx, h)
	}})
	return a
}

// events returns the events of the current file for which pick returns true.
func (a *audited) events(t *testing.T, pick func(auditv1.Event) bool) (events []auditv1.Event) {
	t.Helper()
	data, err := os.ReadFile(server.AuditLogPath(a.dir))
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(data) {
		var ev auditv1.Event
		if err := json.Unmarshal(line, &ev); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if pick(ev) {
			events = append(events, ev)
		}
	}
	return events
}

// lines returns the events of a resource as VERB SUBRESOURCE STAGE.
func (a *audited) lines(t *testing.T, resource, name string) (lines []string) {
	t.Helper()
	for _, ev := range a.events(t, func(ev auditv1.Event) bool {
		return ev.ObjectRef != nil && ev.ObjectRef.Resource == resource && (name == "" || ev.ObjectRef.Name == name)
	}) {
		lines = append(lines, strings.Join(slices.DeleteFunc([]string{ev.Verb, ev.ObjectRef.Subresource, string(ev.Stage)}, func(s string) bool { return s == "" }), " "))
	}
	return lines
}

func (a *audited) verify(t *testing.T) *auditlog.Report {
	t.Helper()
	key, err := auditlog.ReadKey(server.AuditKeyPath(a.dir))
	if err != nil {
		t.Fatal(err)
	}
	head, err := server.AuditHead(t.Context(), storage.Config{DataDir: a.dir})
	if err != nil {
		t.Fatal(err)
	}
	r, err := auditlog.Verify(server.AuditLogPath(a.dir), key, head)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestAuditByDefault(t *testing.T) {
	a := startAudited(t, nil)
	client := core(t, a.admin())
	made := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "audited"}, StringData: map[string]string{"k": "hunter2"}}
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "audited"}}
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "audited"}}
	_, err1 := client.CoreV1().Secrets("default").Create(t.Context(), made, metav1.CreateOptions{})
	_, err2 := client.CoreV1().Secrets("default").Get(t.Context(), "audited", metav1.GetOptions{})
	_, err3 := client.RbacV1().Roles("default").Create(t.Context(), role, metav1.CreateOptions{})
	_, err4 := client.CoreV1().ConfigMaps("default").Create(t.Context(), configMap, metav1.CreateOptions{})
	_, err5 := client.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
	_, err6 := client.CoreV1().RESTClient().Get().AbsPath("/apis/sim.hykube.io/v1/namespaces/default/sim-networks/none/state").DoRaw(t.Context())
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil || err6 == nil {
		t.Fatal(err, err6)
	}
	plan := planned(t, a.instance, "default", func(p *v1alpha1.Plan) {
		p.Status.Contributors = []v1alpha1.Contributor{{Identity: v1alpha1.Identity{Username: "eve"}, Wrote: []string{v1alpha1.WroteSpec}}, {More: true}}
	})
	if _, err := decide(t, objects(t, a.admin()).Resource(plans).Namespace("default"), plan, v1alpha1.DecisionApproved, digest); err != nil {
		t.Fatal(err)
	}
	for what, want := range map[[2]string][]string{
		{"secrets", "audited"}:      {"create ResponseComplete", "get RequestReceived", "get ResponseComplete"},
		{"roles", ""}:               {"create RequestReceived", "create ResponseComplete"},
		{"configmaps", ""}:          {"create ResponseComplete"},
		{"sim-networks", "none"}:    {"get state RequestReceived", "get state ResponseComplete"},
		{"plans", plan.Name}:        {"update approval RequestReceived", "update approval ResponseComplete"},
		{"clusterroles", "kubectl"}: nil,
	} {
		eventually(t, strings.Join(what[:], "/")+" is recorded", func() bool { return cmp.Equal(want, a.lines(t, what[0], what[1])) })
	}
	approvals := a.events(t, func(ev auditv1.Event) bool { return ev.ObjectRef != nil && ev.ObjectRef.Subresource == "approval" })
	last := approvals[len(approvals)-1]
	if last.Annotations["audit.hykube.io/digest"] != digest || last.Annotations["audit.hykube.io/decision"] != "Approved" ||
		last.Annotations["audit.hykube.io/contributors"] != "eve,others" || last.User.Username != "hykube:admin" {
		t.Errorf("the approval is recorded as %+v", last)
	}
	if _, err := objects(t, a.admin()).Resource(plans).Namespace("default").Update(t.Context(), newPlan(plan.Name, nil), metav1.UpdateOptions{}, "cancel"); err != nil {
		t.Fatal(err)
	}
	cancelled := func(ev auditv1.Event) bool {
		return ev.ObjectRef != nil && ev.ObjectRef.Subresource == "cancel" && ev.Annotations["audit.hykube.io/decision"] == "Cancelled" &&
			ev.Annotations["audit.hykube.io/decider"] == "hykube:admin" && ev.Annotations["audit.hykube.io/digest"] == digest
	}
	eventually(t, "the cancel is recorded with the decision", func() bool { return len(a.events(t, cancelled)) > 0 })
	data, err := os.ReadFile(server.AuditLogPath(a.dir))
	if err != nil || bytes.Contains(data, []byte("hunter2")) || bytes.Contains(data, []byte("aHVudGVyMg")) {
		t.Errorf("the audit log holds the secret: %v", err)
	}
	if r := a.verify(t); len(r.Problems) > 0 || len(r.Notes) > 0 || r.First != 1 {
		t.Errorf("%+v", r)
	}
	if err := a.stop(); err != nil {
		t.Fatal(err)
	}
	if r := a.verify(t); len(r.Problems) > 0 || len(r.Notes) > 0 {
		t.Errorf("after the end of the server: %+v", r)
	}
}

// The refusal of a value quotes it, and the value may be a secret.
func TestAuditHasNoMessages(t *testing.T) {
	a := startAudited(t, nil)
	bad := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "audited"}, Data: map[string]string{"hunter2 is no key": ""}}
	if _, err := core(t, a.admin()).CoreV1().ConfigMaps("default").Create(t.Context(), bad, metav1.CreateOptions{}); err == nil || !strings.Contains(err.Error(), "hunter2") {
		t.Fatal(err)
	}
	eventually(t, "the refusal is recorded", func() bool { return len(a.lines(t, "configmaps", "")) == 1 })
	refused := a.events(t, func(ev auditv1.Event) bool { return ev.ObjectRef != nil && ev.ObjectRef.Resource == "configmaps" })[0]
	if s := refused.ResponseStatus; s == nil || s.Code != 422 || s.Reason != metav1.StatusReasonInvalid || s.Message != "" || s.Details != nil {
		t.Errorf("the refusal is recorded as %+v", refused.ResponseStatus)
	}
}

// A user cannot claim to act on behalf of another.
func TestAuditTrustsOnlyTheServerAboutCauses(t *testing.T) {
	a := startAudited(t, nil)
	_, err := core(t, a.admin()).CoreV1().RESTClient().Get().AbsPath("/api/v1/namespaces/default/secrets").
		SetHeader("Hykube-On-Behalf-Of", `{"audit.hykube.io/requester":"forged"}`).DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the request is recorded", func() bool { return len(a.lines(t, "secrets", "")) >= 2 })
	if found := a.events(t, func(ev auditv1.Event) bool { return ev.Annotations["audit.hykube.io/requester"] != "" }); len(found) > 0 {
		t.Errorf("recorded: %+v", found)
	}
}

// While the log cannot be written, the server rejects all calls that it must record.
func TestUnwritableAuditLog(t *testing.T) {
	a := startAudited(t, func(o *server.Options) { o.Audit.LogOptions.MaxSize = 1 })
	client := core(t, a.admin())
	dir := filepath.Dir(server.AuditLogPath(a.dir))
	if err := os.Rename(dir, dir+".away"); err != nil { // so the log cannot be rotated
		t.Fatal(err)
	}
	long := strings.Repeat("x", 100_000)
	var err error
	for range 12 {
		_, err = client.CoreV1().RESTClient().Get().AbsPath("/api/v1/namespaces/default/secrets").Param("x", long).DoRaw(t.Context())
	}
	if !apierrors.IsInternalError(err) {
		t.Errorf("a Secret is read without a record: %.100v", err)
	}
	plan := planned(t, a.instance, "default", nil)
	if err := client.CoreV1().RESTClient().Put().AbsPath("/apis/hykube.io/v1alpha1/namespaces/default/plans/"+plan.Name+"/approval").Param("x", long).
		Body(approvalBody(t, plan)).SetHeader("Content-Type", "application/json").Do(t.Context()).Error(); !apierrors.IsInternalError(err) {
		t.Errorf("a plan is approved without a record: %.100v", err)
	}
	if _, err := a.record(audit.Call{Operation: audit.Create, Type: long}); err == nil || !strings.Contains(err.Error(), "the provider was not called") {
		t.Errorf("a provider is called without a record: %.100v", err)
	}
	ready := func() error {
		_, err := client.CoreV1().RESTClient().Get().AbsPath("/readyz/audit").DoRaw(t.Context())
		return err
	}
	if err := os.Rename(dir+".away", dir); err != nil && !errors.Is(err, fs.ErrExist) {
		t.Fatal(err)
	}
	eventually(t, "the server is ready again", func() bool { return ready() == nil })
	if r := a.verify(t); len(r.Problems) > 0 || len(r.Notes) == 0 || !strings.Contains(r.Notes[0].Text, "could not be written") {
		t.Errorf("problems %v, notes %v", r.Problems, r.Notes)
	}
}

// The server records each read of a Secret for a plan or a user, and each change of keys, policies or limits.
func TestFullAuditLog(t *testing.T) {
	a := startAudited(t, func(o *server.Options) { o.Audit.LogOptions.MaxSize = 1 })
	client := core(t, a.admin())
	made := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "audited"}, StringData: map[string]string{"k": "hunter2"}}
	if _, err := client.CoreV1().Secrets("default").Create(t.Context(), made, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	ctx := audit.With(t.Context(), audit.Cause{Requester: "jane"})
	if value, err := a.configs.Secret(ctx, "default", "audited", "k"); err != nil || string(value) != "hunter2" {
		t.Fatalf("%s, %v", value, err)
	}
	byServer := func() (reads []auditv1.Event) {
		return a.events(t, func(ev auditv1.Event) bool {
			return ev.User.Username == "system:apiserver" && ev.ObjectRef != nil && ev.ObjectRef.Name == "audited"
		})
	}
	eventually(t, "the read is recorded before and after", func() bool { return len(byServer()) == 2 })
	for _, ev := range byServer() {
		if ev.Annotations["audit.hykube.io/requester"] != "jane" {
			t.Errorf("a record of the server's read does not have the requester: %+v", ev)
		}
	}
	a.fill(t, client)
	if value, err := a.configs.Secret(ctx, "default", "audited", "k"); err == nil || value != nil {
		t.Errorf("the server reads a key of a Secret without a record: %s, %v", value, err)
	}
	if data, err := a.configs.SecretData(ctx, "default", "audited"); err == nil || data != nil {
		t.Errorf("the server reads a Secret without a record: %s, %v", data, err)
	}
	for _, path := range []string{
		"/rotate-keys?certificates", "/api/v1/namespaces", "/api/v1/namespaces/default/resourcequotas",
		"/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas", "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations",
		"/apis/hykube.io/v1alpha1/namespaces/default/evaluations",
	} {
		result := client.CoreV1().RESTClient().Post().RequestURI(path).Body([]byte("{}")).SetHeader("Content-Type", "application/json").Do(t.Context())
		if err := result.Error(); !apierrors.IsInternalError(err) {
			t.Errorf("POST %s succeeds or fails for another reason than its record: %v", path, err)
		} else if text := err.Error(); !strings.Contains(text, "the audit log cannot be written") || !strings.Contains(text, "must record first: ") {
			t.Errorf("POST %s: %v; want the cause and what to do", path, err)
		}
	}
	if _, err := client.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("a request without a record fails: %v", err)
	}
}

// fill fills the audit log until not even a short record can be written.
func (a *audited) fill(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	dir := filepath.Dir(server.AuditLogPath(a.dir))
	if err := os.Rename(dir, dir+".away"); err != nil { // so the log cannot be rotated
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Rename(dir+".away", dir); err != nil {
			t.Error(err)
		}
	})
	for _, size := range []int{100_000, 10_000, 0} {
		request := client.CoreV1().RESTClient().Get().AbsPath("/api/v1/secrets").Param("x", strings.Repeat("x", size))
		eventually(t, "no record can be written", func() bool { return apierrors.IsInternalError(request.Do(t.Context()).Error()) })
	}
}

func approvalBody(t *testing.T, p *v1alpha1.Plan) []byte {
	t.Helper()
	sent := &v1alpha1.Plan{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "Plan"}, ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace}}
	sent.Status.Approval = &v1alpha1.PlanApproval{Decision: v1alpha1.DecisionApproved, Digest: digest}
	data, err := json.Marshal(sent)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// A server that does nothing writes nothing.
func TestAuditOfAnIdleServer(t *testing.T) {
	a := startAudited(t, nil)
	// The controller that aggregates ClusterRoles is still at work.
	idle := func(ev auditv1.Event) bool { return ev.ObjectRef == nil || ev.ObjectRef.Resource != "clusterroles" }
	before := a.events(t, idle)
	client := core(t, a.admin())
	for range 3 {
		for _, path := range []string{"/readyz", "/livez", "/metrics", "/apis", "/openapi/v3", "/api/v1/namespaces"} {
			if _, err := client.CoreV1().RESTClient().Get().AbsPath(path).DoRaw(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if after := a.events(t, idle); len(after) != len(before) {
		t.Errorf("%d records became %d: %+v", len(before), len(after), after[len(before):])
	}
}

// BenchmarkAudit compares requests with the audit log and without it. A Secret that a user reads has two records, a
// written ConfigMap one, and a read ConfigMap none.
func BenchmarkAudit(b *testing.B) {
	for _, mode := range []string{"off", "on"} {
		o := server.NewOptions()
		if mode == "off" {
			o.Audit.LogOptions.Path = ""
		}
		s, err := start(b.Context(), server.Config{DataDir: filepath.Join(b.TempDir(), "data"), Audit: o.Audit, Wire: testWiring})
		if err != nil {
			b.Fatal(err)
		}
		config := s.admin()
		config.QPS = -1
		client := kubernetes.NewForConfigOrDie(config).CoreV1()
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "audited"}, StringData: map[string]string{"k": "hunter2"}}
		configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "audited"}}
		_, err1 := client.Secrets("default").Create(b.Context(), secret, metav1.CreateOptions{})
		_, err2 := client.ConfigMaps("default").Create(b.Context(), configMap, metav1.CreateOptions{})
		if err := errors.Join(err1, err2); err != nil {
			b.Fatal(err)
		}
		for name, request := range map[string]func(i int) error{
			"read-secret": func(int) error {
				_, err := client.Secrets("default").Get(b.Context(), "audited", metav1.GetOptions{})
				return err
			},
			"read-configmap": func(int) error {
				_, err := client.ConfigMaps("default").Get(b.Context(), "audited", metav1.GetOptions{})
				return err
			},
			"write-configmap": func(i int) error {
				configMap.Data = map[string]string{"i": fmt.Sprint(i)}
				_, err := client.ConfigMaps("default").Update(b.Context(), configMap, metav1.UpdateOptions{})
				return err
			},
		} {
			b.Run(name+"/"+mode, func(b *testing.B) {
				for i := 0; b.Loop(); i++ {
					if err := request(i); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		if err := s.stop(); err != nil {
			b.Fatal(err)
		}
	}
}
