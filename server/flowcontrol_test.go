package server_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/server"
)

var evaluations = v1alpha1.SchemeGroupVersion.WithResource("evaluations")

// flood sends the same requests concurrently, without a retry, each on its own connection.
type flood struct {
	client dynamic.Interface
	ctx    context.Context
	sent   atomic.Int64
	total  int64
	wg     sync.WaitGroup
}

func newFlood(t *testing.T, c *rest.Config) *flood {
	t.Helper()
	c.NextProtos = []string{"http/1.1"} // HTTP/2 would hold back what exceeds the streams of one connection
	ctx, cancel := context.WithCancel(t.Context())
	f := &flood{client: objects(t, c)}
	f.ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { f.sent.Add(1) }})
	t.Cleanup(func() { cancel(); f.wg.Wait() })
	return f
}

func (f *flood) send(n int, request func(ctx context.Context, c dynamic.Interface) error) {
	f.total += int64(n)
	for range n {
		f.wg.Go(func() { _ = request(f.ctx, f.client) }) // being refused is fine
	}
}

// TestAFloodOfOneUserDelaysNoOther keeps every seat busy that one user can get, with evaluations and queries that do
// not end. The server still answers probes, metrics, and the reads, writes and decisions of others. Without priority
// and fairness, this flood occupies all 200 requests that may write.
func TestAFloodOfOneUserDelaysNoOther(t *testing.T) {
	const evaluationsSent, queriesSent, others = 250, 100, 100
	var evaluating, mostEvaluating atomic.Int64
	tokenFile := filepath.Join(t.TempDir(), "tokens.csv")
	if err := os.WriteFile(tokenFile, []byte(tokens), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startT(t, server.Config{DataDir: t.TempDir(), TokenAuthFile: tokenFile, Wire: func(ctx context.Context, h *server.Components) (server.Wiring, error) {
		w, err := testWiring(ctx, h)
		w.Evaluate = func(ctx context.Context, _ v1alpha1.Identity, _ *v1alpha1.Evaluation) error {
			n := evaluating.Add(1)
			defer evaluating.Add(-1)
			for most := mostEvaluating.Load(); n > most && !mostEvaluating.CompareAndSwap(most, n); most = mostEvaluating.Load() {
			}
			<-ctx.Done()
			return ctx.Err()
		}
		return w, err
	}})
	const ns = "default"
	for role, group := range map[string]string{"edit": "writers", "admin": "approvers"} {
		bindOn(t, s, ns, role, group)
	}
	plan := planned(t, s, ns, nil)

	editor, err := rest.HTTPClientFor(s.as("editor"))
	if err != nil {
		t.Fatal(err)
	}
	if heavy, err := core(t, s.admin()).FlowcontrolV1().PriorityLevelConfigurations().Get(t.Context(), "hykube-heavy", metav1.GetOptions{}); err == nil {
		eventually(t, "the server has read its priority levels", func() bool {
			return levelOf(t, editor, http.MethodPost, s.URL()+"/apis/hykube.io/v1alpha1/namespaces/"+ns+"/evaluations") == string(heavy.UID)
		})
	} else {
		t.Fatal(err)
	}
	rude := newFlood(t, s.as("editor"))
	rude.send(evaluationsSent, func(ctx context.Context, c dynamic.Interface) error {
		_, err := c.Resource(evaluations).Namespace(ns).Create(ctx, newObject("Evaluation", "", map[string]any{"expression": "1"}), metav1.CreateOptions{})
		return err
	})
	rude.send(queriesSent, func(ctx context.Context, c dynamic.Interface) error {
		q := newQuery(map[string]any{"provider": "sim", "type": "sim_network"})
		q.SetAnnotations(map[string]string{"fail": "slow"})
		_, err := c.Resource(queries).Namespace(ns).Create(ctx, q, metav1.CreateOptions{})
		return err
	})
	rude.send(others, func(ctx context.Context, c dynamic.Interface) error {
		_, err := c.Resource(plans).Namespace(ns).List(ctx, metav1.ListOptions{})
		return err
	})
	n := newObject("sim-network", "n", map[string]any{"name": "a"})
	n.SetAPIVersion("sim.hykube.io/v1")
	rude.send(others, func(ctx context.Context, c dynamic.Interface) error {
		_, err := c.Resource(simNetworks).Namespace(ns).Create(ctx, n, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	})
	eventually(t, "the flood has been sent", func() bool { return rude.sent.Load() >= rude.total && evaluating.Load() > 0 })

	polite := s.as("approver")
	client := objects(t, polite).Resource(plans).Namespace(ns)
	if _, err := client.Get(t.Context(), plan.Name, metav1.GetOptions{}); err != nil {
		t.Errorf("get: %v", err)
	}
	if _, err := decide(t, client, plan, v1alpha1.DecisionApproved, digest); err != nil {
		t.Errorf("approve: %v", err)
	}
	if err := cancel(t, client, plan); err != nil {
		t.Errorf("cancel: %v", err)
	}
	if _, err := client.Create(t.Context(), newPlan("another", nil), metav1.CreateOptions{}); err != nil {
		t.Errorf("plan: %v", err)
	}
	for _, path := range []string{"/readyz", "/livez"} {
		if err := core(t, polite).Discovery().RESTClient().Get().AbsPath(path).Do(t.Context()).Error(); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	if most := mostEvaluating.Load(); most > 6 {
		t.Errorf("%d evaluations ran at once; the level of heavy requests has 6 seats", most)
	}
}

// cancel asks for the end of a plan.
func cancel(t *testing.T, client dynamic.ResourceInterface, p *v1alpha1.Plan) error {
	t.Helper()
	sent := &unstructured.Unstructured{Object: map[string]any{"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": "Plan", "metadata": map[string]any{"name": p.Name, "namespace": p.Namespace}}}
	_, err := client.Update(t.Context(), sent, metav1.UpdateOptions{}, "cancel")
	return err
}

// TestPriorityLevelsAreObjects changes them as an administrator of a cluster would.
func TestPriorityLevelsAreObjects(t *testing.T) {
	client := core(t, shared.admin()).FlowcontrolV1()
	for _, name := range []string{"exempt", "catch-all", "global-default", "hykube-decisions", "hykube-monitoring", "hykube-heavy", "hykube-queries", "hykube-writes"} {
		if _, err := client.PriorityLevelConfigurations().Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	}
	schemas, err := client.FlowSchemas().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range schemas.Items {
		for _, c := range s.Status.Conditions {
			if c.Type == flowcontrolv1.FlowSchemaConditionDangling && c.Status == flowcontrolv1.ConditionTrue {
				t.Errorf("FlowSchema %q: %s", s.Name, c.Message)
			}
		}
	}
	if _, err := core(t, shared.as("viewer")).FlowcontrolV1().FlowSchemas().List(t.Context(), metav1.ListOptions{}); err == nil {
		t.Error("a user without rights lists the FlowSchemas")
	}
}

// levelOf returns the UID of the priority level that a request had.
func levelOf(t *testing.T, client *http.Client, method, url string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.Header.Get(flowcontrolv1.ResponseHeaderMatchedPriorityLevelConfigurationUID)
}

// TestEveryRequestHasItsLevel reads the level of a request from the response's headers, which hold UIDs.
func TestEveryRequestHasItsLevel(t *testing.T) {
	ns := namespace(t, "levels")
	bind(t, ns, "edit", "writers")
	names := map[string]string{}
	list, err := core(t, shared.admin()).FlowcontrolV1().PriorityLevelConfigurations().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range list.Items {
		names[string(l.UID)] = l.Name
	}
	client, err := rest.HTTPClientFor(shared.as("editor"))
	if err != nil {
		t.Fatal(err)
	}
	hykube := "/apis/hykube.io/v1alpha1/namespaces/" + ns + "/"
	for request, want := range map[string]string{
		"GET /readyz":                                   "exempt",
		"GET /metrics":                                  "hykube-monitoring",
		"GET /api":                                      "global-default",
		"GET " + hykube + "plans":                       "global-default",
		"POST " + hykube + "plans":                      "global-default",
		"PUT " + hykube + "plans/p/approval":            "hykube-decisions",
		"PATCH " + hykube + "plans/p/cancel":            "hykube-decisions",
		"POST " + hykube + "plans/p/objects":            "hykube-heavy",
		"POST " + hykube + "evaluations":                "hykube-heavy",
		"POST " + hykube + "validations":                "hykube-heavy",
		"POST " + hykube + "queries":                    "hykube-queries",
		"POST " + hykube + "providerconfigs?dryRun=All": "hykube-writes",
		"PATCH /apis/sim.hykube.io/v1/namespaces/" + ns + "/sim-networks/n": "hykube-writes",
		"GET /apis/sim.hykube.io/v1/sim-networks":                           "global-default",
	} {
		method, path, _ := strings.Cut(request, " ")
		// The server reads the levels soon after its start.
		eventually(t, request+" has the level "+want, func() bool { return names[levelOf(t, client, method, shared.URL()+path)] == want })
	}
}

// TestExpressionsOfARequestHaveALimitTogether sends one object whose conditions are each within the limit of one
// evaluation.
func TestExpressionsOfARequestHaveALimitTogether(t *testing.T) {
	ns := namespace(t, "expression-budget")
	var conditions []any
	for range 20 {
		conditions = append(conditions, map[string]any{
			"condition": "${sim_disk.d.name != \"x\" && length([for a in range(500) : [for b in range(500) : a]]) > 0}", "errorMessage": "no",
		})
	}
	n := simNetwork("n")
	n.Object["lifecycle"] = map[string]any{"preconditions": conditions}
	_, err := objects(t, shared.admin()).Resource(simNetworks).Namespace(ns).Create(t.Context(), n, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if n := len(causes(err)); !apierrors.IsInvalid(err) || n == 0 || n == len(conditions) {
		t.Errorf("%d of %d conditions are refused, want some: %v", n, len(conditions), err)
	}
}

// TestHalfRequestsTakeNoSeat sends the first bytes of more writes than there are seats for writes, from a user with no
// rights. Others still write.
func TestHalfRequestsTakeNoSeat(t *testing.T) {
	const halves = 60
	ns := namespace(t, "halves")
	bind(t, ns, "edit", "writers")
	write := func(ctx context.Context, name string) error {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
		_, err := core(t, shared.as("editor")).CoreV1().ConfigMaps(ns).Create(ctx, cm, metav1.CreateOptions{})
		return err
	}
	eventually(t, "the editor may write", func() bool { return write(t.Context(), "before") == nil })
	host := strings.TrimPrefix(shared.admin().Host, "https://")
	for range halves {
		conn, err := tls.Dial("tcp", host, &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		fmt.Fprintf(conn, "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer viewer-token\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n{\"a\"", host)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // less than a request waits for a seat
	defer cancel()
	if err := write(ctx, "beside"); err != nil {
		t.Errorf("a write beside %d half requests: %v", halves, err)
	}
}
