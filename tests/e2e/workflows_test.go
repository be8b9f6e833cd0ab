package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/sdk/steps"
	"github.com/hykube/hykube/tests/harness"
	"github.com/hykube/hykube/tests/simcloud"
)

// rolloutLimit is the maximum time of a rollout whose worker is killed at each step.
const rolloutLimit = 4 * time.Minute

// errNotYet means that a condition does not hold yet.
var errNotYet = errors.New("not yet")

// rolloutWorker is the example's program, with the credentials of a user with rights in one namespace.
type rolloutWorker struct {
	t          *testing.T
	program    string
	kubeconfig string
	log        lockedLog
	running    *exec.Cmd
}

// lockedLog collects the output of several processes.
type lockedLog struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func newRolloutWorker(t *testing.T, namespace string) *rolloutWorker {
	t.Helper()
	dir := t.TempDir()
	w := &rolloutWorker{t: t, program: filepath.Join(dir, "bluegreen"), kubeconfig: filepath.Join(dir, "flow.kubeconfig")}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", w.program, "../../examples/workflows/bluegreen").CombinedOutput(); err != nil {
		t.Fatalf("build the example: %v\n%s", err, out)
	}
	cmd := shared.Command(t.Context(), "hykube", "kubeconfig", "--user", "flow", "--temporal", "-n", namespace, "--data-dir", shared.Data(), "--output", w.kubeconfig)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "flow.temporal.toml written: Temporal namespace hykube."+namespace) {
		t.Fatalf("make the user's files: %v\n%s", err, out)
	}
	for _, role := range []string{"edit", "hykube:plan-approver"} {
		kubectl(t, "create", "rolebinding", "flow-"+strings.ReplaceAll(role, ":", "-"), "--clusterrole="+role, "--user=flow", "-n", namespace)
	}
	t.Cleanup(func() {
		w.kill()
		if t.Failed() {
			t.Logf("the worker:\n%s", w.log.text.String())
		}
	})
	return w
}

// newRolloutWorkerWithBase also applies the objects that the rollouts need. Their names in the cloud begin with prefix.
func newRolloutWorkerWithBase(t *testing.T, namespace, prefix string) *rolloutWorker {
	t.Helper()
	kubectl(t, "create", "namespace", namespace)
	base, err := os.ReadFile("../../examples/workflows/bluegreen/base.yaml")
	if err != nil {
		t.Fatal(err)
	}
	objects := strings.NewReplacer("namespace: bluegreen", "namespace: "+namespace, "name: bluegreen\n", "name: "+namespace+"\n", "name: bluegreen-", "name: "+prefix).Replace(string(base))
	kubectlWith(t, objects, "hykube", "apply", "-f", "-", "--auto-approve")
	return newRolloutWorker(t, namespace)
}

// start starts the worker's process.
func (w *rolloutWorker) start() {
	w.t.Helper()
	w.running = exec.Command(w.program, "--kubeconfig", w.kubeconfig, "worker")
	w.running.Stdout, w.running.Stderr = &w.log, &w.log
	if err := w.running.Start(); err != nil {
		w.t.Fatal(err)
	}
}

// kill ends the worker with SIGKILL.
func (w *rolloutWorker) kill() {
	if w.running != nil {
		_ = w.running.Process.Kill()
		_ = w.running.Wait() // it was killed
		w.running = nil
	}
}

// client runs a command of the example.
func (w *rolloutWorker) client(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, w.program, append([]string{"--kubeconfig", w.kubeconfig}, args...)...).CombinedOutput()
	return string(out), err
}

func (w *rolloutWorker) begin(id, rollout string) {
	w.t.Helper()
	file := filepath.Join(w.t.TempDir(), id+".json")
	if err := os.WriteFile(file, []byte(rollout), 0o600); err != nil {
		w.t.Fatal(err)
	}
	if out, err := w.client(w.t.Context(), "start", id, file); err != nil {
		w.t.Fatalf("start %s: %v\n%s", id, err, out)
	}
}

func (w *rolloutWorker) decide(id, decision string) {
	w.t.Helper()
	if out, err := w.client(w.t.Context(), "decide", id, decision); err != nil {
		w.t.Fatalf("decide %s: %v\n%s", id, err, out)
	}
}

// plansOfWorkflow returns the plans that a workflow asked for, oldest first.
func plansOfWorkflow(t *testing.T, namespace, id string) (plans []v1alpha1.Plan) {
	t.Helper()
	var list v1alpha1.PlanList
	if err := json.Unmarshal([]byte(kubectl(t, "get", "plans", "-n", namespace, "-o", "json", "--sort-by=.metadata.creationTimestamp")), &list); err != nil {
		t.Fatal(err)
	}
	for _, p := range list.Items {
		if p.Annotations[v1alpha1.AnnotationWorkflowID] == id {
			plans = append(plans, p)
		}
	}
	// The times are in whole seconds. A workflow makes a plan when the one before has ended.
	slices.SortStableFunc(plans, func(a, b v1alpha1.Plan) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(open(&a), open(&b)))
	})
	return plans
}

// open returns 1 for a plan that has not ended, else 0.
func open(p *v1alpha1.Plan) int {
	if p.Ended() {
		return 0
	}
	return 1
}

// awaitPlans waits until a workflow has asked for a number of plans, and all but the last have ended. ended says whether
// the last must have ended, too.
func awaitPlans(t *testing.T, namespace, id string, count int, ended bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), rolloutLimit)
	defer cancel()
	err := harness.Poll(ctx, 50*time.Millisecond, func() error {
		plans := plansOfWorkflow(t, namespace, id)
		if len(plans) < count || ended && !plans[count-1].Ended() {
			return errNotYet
		}
		return nil
	})
	if err != nil {
		t.Fatalf("workflow %s has %d plans, want %d: %v", id, len(plansOfWorkflow(t, namespace, id)), count, err)
	}
}

// effects counts the creates and deletes of instances in the cloud, by name.
func effects(t *testing.T, prefix string) (creates, deletes map[string]int) {
	t.Helper()
	calls, err := cloud.Calls(t.Context(), simcloud.Filter{Effect: true, Name: prefix + "-*"})
	if err != nil {
		t.Fatal(err)
	}
	creates, deletes = map[string]int{}, map[string]int{}
	for _, c := range calls {
		switch c.Op {
		case "create":
			creates[c.Name]++
		case "delete":
			deletes[c.Name]++
		}
	}
	return creates, deletes
}

// TestBlueGreen runs the example as a process and kills it at each step. Nothing is made twice, and nothing is left.
func TestBlueGreen(t *testing.T) {
	t.Parallel()
	const namespace = "bluegreen"
	kubectl(t, "create", "namespace", namespace)
	kubectl(t, "hykube", "apply", "-f", "../../examples/workflows/bluegreen/base.yaml", "--auto-approve")
	w := newRolloutWorker(t, namespace)
	w.start()
	ctx, cancel := context.WithTimeout(t.Context(), 2*rolloutLimit)
	defer cancel()
	wait := func(id string) string {
		t.Helper()
		out, err := w.client(ctx, "wait", id)
		if err != nil {
			t.Fatalf("workflow %s: %v\n%s", id, err, out)
		}
		return out
	}

	// The first set has no other to replace. It goes on by itself after its soak time.
	w.begin("first", `{"new": "blue", "waves": [2], "image": "debian-13", "subnet": "front", "record": "www", "approve": true, "soak": 1000000, "heartbeat": 4000000000}`)
	if out := wait("first"); !strings.Contains(out, `"serving":"blue"`) {
		t.Fatalf("the first rollout: %s", out)
	}

	// The second one replaces it. The worker dies when each plan appears, and while it waits for a person.
	w.begin("second", `{"new": "green", "old": "blue", "waves": [1, 3], "image": "debian-13", "subnet": "front", "record": "www", "approve": true, "heartbeat": 4000000000}`)
	for n := 1; n <= 3; n++ { // two waves and the record
		awaitPlans(t, namespace, "second", n, false)
		w.kill()
		w.start()
	}
	awaitPlans(t, namespace, "second", 3, true)
	w.kill()
	if creates, deletes := effects(t, "blue"); len(creates) != 2 || len(deletes) != 0 {
		t.Errorf("before the decision: created %v, deleted %v; want that the old set stays", creates, deletes)
	}
	w.decide("second", "promote") // without a worker
	w.start()
	awaitPlans(t, namespace, "second", 4, false)
	w.kill()
	w.start()
	if out := wait("second"); !strings.Contains(out, `"serving":"green"`) {
		t.Errorf("the second rollout: %s", out)
	}
	if plans := plansOfWorkflow(t, namespace, "second"); len(plans) != 4 {
		t.Errorf("the workflow made %d plans, want one for each of its four changes", len(plans))
	}
	creates, deletes := effects(t, "green")
	for _, name := range []string{"green-0", "green-1", "green-2"} {
		if creates[name] != 1 || deletes[name] != 0 {
			t.Errorf("%s: created %d times, deleted %d times; want once and never", name, creates[name], deletes[name])
		}
	}
	if _, deletes := effects(t, "blue"); deletes["blue-0"] != 1 || deletes["blue-1"] != 1 {
		t.Errorf("the old set: deleted %v, want each once", deletes)
	}

	// A plan names its workflow, and the workflow its plans.
	plan := plansOfWorkflow(t, namespace, "second")[0]
	if out := kubectl(t, "hykube", "status", plan.Name, "-n", namespace); !strings.Contains(out, "second in the Temporal namespace hykube.bluegreen, run "+plan.Annotations[v1alpha1.AnnotationWorkflowRunID]) {
		t.Errorf("the status does not name the workflow:\n%s", out)
	}
	if run := kubectl(t, "get", "--raw", "/temporal/api/v1/namespaces/hykube.bluegreen/workflows/second"); !strings.Contains(run, "hykubePlan1") {
		t.Errorf("the Web UI's run names no plan: %s", run)
	}

	// A person takes the third one back.
	w.begin("third", `{"new": "red", "old": "green", "waves": [1], "image": "debian-13", "subnet": "front", "record": "www", "approve": true, "heartbeat": 4000000000}`)
	awaitPlans(t, namespace, "third", 2, true)
	w.decide("third", "rollback")
	awaitPlans(t, namespace, "third", 3, false)
	w.kill() // in the middle of the compensation
	w.start()
	if out, err := w.client(ctx, "wait", "third"); err == nil || !strings.Contains(out, `a person decided "rollback"`) {
		t.Errorf("the third rollout: %v, %s; want that it was taken back", err, out)
	}
	if creates, deletes := effects(t, "red"); creates["red-0"] != 1 || deletes["red-0"] != 1 {
		t.Errorf("the set that was taken back: created %v, deleted %v; want once each", creates, deletes)
	}
	if _, deletes := effects(t, "green"); len(deletes) != 0 {
		t.Errorf("the set that serves: deleted %v, want none", deletes)
	}
	kubectl(t, "hykube", "plan", "-n", namespace, "--refresh=All", "--detailed-exitcode") // nothing is left to do
	kubectl(t, "hykube", "destroy", "--all", "-n", namespace, "--auto-approve")
}

// TestWorkflowsWaitForAPerson shows that a worker without the right to approve gets nothing round an approval.
func TestWorkflowsWaitForAPerson(t *testing.T) {
	t.Parallel()
	const namespace = "story-flow-approval"
	w := newRolloutWorkerWithBase(t, namespace, "flow-approval-")
	kubectl(t, "delete", "rolebinding", "flow-hykube-plan-approver", "-n", namespace)
	w.start()
	ctx, cancel := context.WithTimeout(t.Context(), rolloutLimit)
	defer cancel()

	w.begin("asks", `{"new": "person", "waves": [1], "image": "debian-13", "subnet": "front", "record": "person-www", "soak": 1000000, "heartbeat": 4000000000}`)
	for n := 1; n <= 2; n++ {
		awaitPlans(t, namespace, "asks", n, false)
		kubectl(t, "wait", "plan/"+plansOfWorkflow(t, namespace, "asks")[n-1].Name, "-n", namespace, "--for=condition=Planned", "--timeout=60s")
		p := plansOfWorkflow(t, namespace, "asks")[n-1] // with its digest
		if creates, _ := effects(t, "person"); len(creates) != n-1 {
			t.Errorf("before approval %d: created %v", n, creates)
		}
		kubectl(t, "hykube", "approve", p.Name, "-n", namespace, "--digest", p.Status.Digest)
	}
	if out, err := w.client(ctx, "wait", "asks"); err != nil || !strings.Contains(out, `"serving":"person"`) {
		t.Errorf("the rollout: %v, %s", err, out)
	}

	// The same workflow that wants to approve by itself is refused, and takes back what it recorded.
	w.begin("forces", `{"new": "forced", "waves": [1], "image": "debian-13", "subnet": "front", "record": "person-www", "approve": true, "heartbeat": 4000000000}`)
	if out, err := w.client(ctx, "wait", "forces"); err == nil || !strings.Contains(out, "approve") || !strings.Contains(out, "forbidden") {
		t.Errorf("a worker without the right to approve: %v, %s; want that it is refused", err, out)
	}
	plans := plansOfWorkflow(t, namespace, "forces")
	if len(plans) != 1 {
		t.Fatalf("the refused workflow made %d plans, want one", len(plans))
	}
	if out, _ := w.client(ctx, "wait", "forces"); !strings.Contains(out, "the worker's user may not discard it") || !strings.Contains(out, "kubectl hykube discard "+plans[0].Name+" -n "+namespace) {
		t.Errorf("a worker without the right to discard: %s; want that the result says how to discard plan %s", out, plans[0].Name)
	}
	kubectl(t, "hykube", "discard", plans[0].Name, "-n", namespace)
	if creates, _ := effects(t, "forced"); len(creates) != 0 {
		t.Errorf("created without an approval: %v", creates)
	}
	if sets := kubectl(t, "get", "resourcesets", "-n", namespace, "-o", "name"); sets != "resourceset.hykube.io/person\n" {
		t.Errorf("the workflow did not take back what it recorded: %s", sets)
	}

	// With the right to approve, a cancelled workflow leaves no plan that a person could approve later.
	kubectl(t, "create", "rolebinding", "flow-approver", "--clusterrole=hykube:plan-approver", "--user=flow", "-n", namespace)
	w.begin("stops", `{"new": "stopped", "waves": [1], "image": "debian-13", "subnet": "front", "record": "person-www", "heartbeat": 4000000000}`)
	awaitPlans(t, namespace, "stops", 1, false)
	c := temporalClient(t, namespace, nil)
	awaitStep(t, c, "stops", "hykube.AwaitApproval")
	if err := c.CancelWorkflow(ctx, "stops", ""); err != nil {
		t.Fatal(err)
	}
	if out, err := w.client(ctx, "wait", "stops"); err == nil || !strings.Contains(out, "canceled") {
		t.Errorf("the cancelled rollout: %v, %s", err, out)
	}
	plans = plansOfWorkflow(t, namespace, "stops")
	if len(plans) != 1 || plans[0].Status.Approval == nil || plans[0].Status.Approval.Decision != v1alpha1.DecisionDiscarded {
		t.Errorf("the cancelled rollout left the plans %+v, want one that is discarded", plans)
	}
	kubectl(t, "hykube", "destroy", "--all", "-n", namespace, "--auto-approve")
}

// approveOf is a workflow that approves a plan on the queue of the example's worker, whose user may do that.
func approveOf(ctx workflow.Context, plan steps.PlanRef) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{TaskQueue: "bluegreen"})
	_, err := steps.Apply(ctx, steps.ApplyOptions{Plan: plan, Approve: true})
	return err
}

// TestWorkflowsGiveNoRightsOfTheirWorker has an author who may not approve, and who reaches for the rights of the worker's
// user: with a workflow on a queue of her own, and with the worker's workflow. An approver starts the same workflow.
func TestWorkflowsGiveNoRightsOfTheirWorker(t *testing.T) {
	t.Parallel()
	const namespace = "story-flow-rights"
	w := newRolloutWorkerWithBase(t, namespace, "flow-rights-")
	w.start()
	ctx, cancel := context.WithTimeout(t.Context(), rolloutLimit)
	defer cancel()
	user := func(name string, roles ...string) *rest.Config {
		file := filepath.Join(t.TempDir(), name+".kubeconfig")
		if out, err := shared.Command(ctx, "hykube", "kubeconfig", "--user", name, "-n", namespace, "--data-dir", shared.Data(), "--output", file).CombinedOutput(); err != nil {
			t.Fatalf("make the files of %s: %v\n%s", name, err, out)
		}
		for _, role := range roles {
			kubectl(t, "create", "rolebinding", name+"-"+strings.ReplaceAll(role, ":", "-"), "--clusterrole="+role, "--user="+name, "-n", namespace)
		}
		config, err := clientcmd.BuildConfigFromFlags("", file)
		if err != nil {
			t.Fatal(err)
		}
		return config
	}
	connect := func(config *rest.Config) client.Client {
		options, err := steps.ConnectOptions(config, namespace)
		if err != nil {
			t.Fatal(err)
		}
		c, err := client.DialContext(ctx, options)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	mallory, alice := connect(user("mallory", "edit")), connect(user("alice", "edit", "hykube:plan-approver"))

	kubectlWith(t, `{"apiVersion":"hykube.io/v1alpha1","kind":"Plan","metadata":{"name":"evil"},"spec":{"destroy":true,"targets":["sim_subnet.front"]}}`, "create", "-n", namespace, "-f", "-")
	kubectl(t, "wait", "plan/evil", "-n", namespace, "--for=condition=Planned", "--timeout=60s")
	var evil v1alpha1.Plan
	if err := json.Unmarshal([]byte(kubectl(t, "get", "plan", "evil", "-n", namespace, "-o", "json")), &evil); err != nil {
		t.Fatal(err)
	}
	own := worker.New(mallory, "mallory", worker.Options{})
	own.RegisterWorkflow(approveOf)
	if err := own.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(own.Stop)
	run, err := mallory.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: "evil", TaskQueue: "mallory"}, approveOf,
		steps.PlanRef{Namespace: namespace, Name: "evil", UID: evil.UID, Digest: evil.Status.Digest})
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Get(ctx, nil); !steps.Is(err, steps.Forbidden) || !strings.Contains(err.Error(), `"mallory"`) {
		t.Errorf("an approval through the worker of another user: %v, want Forbidden for mallory", err)
	}
	rollout := map[string]any{"new": "lent", "waves": []int{1}, "image": "debian-13", "subnet": "front", "record": "lent-www", "approve": true, "soak": 1}
	run, err = mallory.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: "lent", TaskQueue: "bluegreen"}, "BlueGreen", rollout)
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Get(ctx, nil); err == nil || !strings.Contains(err.Error(), "orbidden") {
		t.Errorf("a rollout that approves, by a user who may not: %v, want Forbidden", err)
	}
	if creates, _ := effects(t, "lent"); len(creates) != 0 {
		t.Errorf("created without an approval: %v", creates)
	}

	rollout["new"], rollout["record"] = "given", "given-www"
	if run, err = alice.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: "given", TaskQueue: "bluegreen"}, "BlueGreen", rollout); err != nil {
		t.Fatal(err)
	}
	if err := run.Get(ctx, nil); err != nil {
		t.Errorf("a rollout by an approver: %v", err)
	}
	for _, p := range plansOfWorkflow(t, namespace, "given") {
		if by, approved := p.Status.RequestedBy, p.Status.Approval; by.String() != "alice through flow" || approved == nil || approved.By.String() != "alice through flow" {
			t.Errorf("plan %s: requested by %v, decided by %+v; want alice through flow", p.Name, by, approved)
		}
	}
	kubectl(t, "hykube", "discard", "evil", "-n", namespace)
	kubectl(t, "hykube", "destroy", "--all", "-n", namespace, "--auto-approve")
}
