package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/tests/webui"
)

// pageLimit is the maximum time until a page on a busy machine shows the expected text.
const pageLimit = 30 * time.Second

// estate has the objects of the run that the test opens.
const estate = `
apiVersion: sim.hykube.io/v1
kind: sim-network
metadata: {name: main, namespace: story-webui}
spec: {name: webui-main}
---
apiVersion: sim.hykube.io/v1
kind: sim-subnet
metadata: {name: front, namespace: story-webui}
spec: {name: webui-front, network_id: "${sim_network.main.id}", cidr: 10.0.1.0/24}
---
apiVersion: sim.hykube.io/v1
kind: sim-password
metadata: {name: db, namespace: story-webui}
spec: {length: 32, special: false}
`

// TestAppliedPlanInWebUI opens the run of an applied plan in a browser, through the proxy of `kubectl hykube ui`, which
// passes on the user's credentials.
func TestAppliedPlanInWebUI(t *testing.T) {
	t.Parallel()
	browser := webui.Open(t)
	newNamespace(t, "story-webui")
	kubectlWith(t, estate, "hykube", "apply", "--auto-approve", "-f", "-")
	plan := strings.Fields(kubectl(t, "get", "plans", "-n", "story-webui", "-o", "jsonpath={.items[0].metadata.name} {.items[0].metadata.uid}"))
	if len(plan) != 2 {
		t.Fatalf("plan: %q, want a name and a uid", plan)
	}
	name, uid := plan[0], plan[1]

	address, enter := startUI(t)

	// The printed address logs the browser in. After that it uses a cookie.
	planRun, applyRun := "plan.story-webui."+name+"."+uid, "apply.story-webui."+name+"."+uid
	browser.See(enter, pageLimit, applyRun)
	runs := address + "/temporal/namespaces/hykube/workflows"
	browser.See(runs+"?query="+url.QueryEscape(fmt.Sprintf("HykubePlan=%q", name)), pageLimit, applyRun, planRun, "Completed")
	browser.See(runs+"?query="+url.QueryEscape(`HykubeOutcome="Applied" AND HykubeNamespace="story-webui"`), pageLimit, applyRun)

	// With the name of a plan, the address leads to the run that applied it.
	_, enterRun := startUI(t, name, "-n", "story-webui")
	browser.See(enterRun, pageLimit, applyRun, "create sim_network.main", "record the outcome")

	// A link saves a view of the runs of a namespace.
	view := url.Values{"query": {`HykubeNamespace="story-webui" AND WorkflowType="Apply"`}, "savedQuery": {"kept-view"}}
	browser.See(runs+"?"+view.Encode(), pageLimit, "kept-view", applyRun)
	browser.See(runs, pageLimit, "kept-view", planRun)

	// The run describes its changes, and has no secret.
	text := browser.See(runs+"/"+applyRun+"/"+runID(t, applyRun)+"/timeline", pageLimit, "Completed",
		"create sim_network.main", "create sim_subnet.front", "check the approval, order the steps", "record the outcome")
	secret := kubectl(t, "get", "--raw", "/apis/sim.hykube.io/v1/namespaces/story-webui/sim-passwords/db/state")
	if _, rest, ok := strings.Cut(secret, `"result":"`); !ok {
		t.Fatalf("state of the password: %q", secret)
	} else if result, _, _ := strings.Cut(rest, `"`); len(result) != 32 || strings.Contains(text, result) {
		t.Errorf("the page shows the password, or there is none: %q", result)
	}
	for _, message := range browser.Errors() {
		t.Errorf("a page logged: %s", message)
	}
}

// runID reads the Web UI's API, which needs the same credentials.
func runID(t *testing.T, workflow string) string {
	t.Helper()
	var answer struct {
		WorkflowExecutionInfo struct{ Execution struct{ RunID string } }
	}
	raw := kubectl(t, "get", "--raw", "/temporal/api/v1/namespaces/hykube/workflows/"+workflow)
	if err := json.Unmarshal([]byte(raw), &answer); err != nil || answer.WorkflowExecutionInfo.Execution.RunID == "" {
		t.Fatalf("run of %s: %v in %s", workflow, err, raw)
	}
	return answer.WorkflowExecutionInfo.Execution.RunID
}

// startUI runs `kubectl hykube ui` until the test ends. It returns the address that it serves, and the one that logs
// in.
func startUI(t *testing.T, args ...string) (address, enter string) {
	t.Helper()
	// The context of the test ends before its cleanups run, and would kill the command.
	return serveUI(t, shared.Command(context.Background(), "kubectl-hykube", append([]string{"ui"}, args...)...))
}

// serveUI runs a command with the verb "ui" until the test ends.
func serveUI(t *testing.T, cmd *exec.Cmd) (address, enter string) {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("kubectl hykube ui, interrupted: %v", err)
		}
	})
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatalf("kubectl hykube ui printed no address: %v", lines.Err())
	}
	enter = strings.TrimSpace(lines.Text())
	u, err := url.Parse(enter)
	if err != nil || u.Host == "" {
		t.Fatalf("kubectl hykube ui printed %q, which is no address: %v", enter, err)
	}
	return "http://" + u.Host, enter
}

// TestOwnWorkflowInWebUI opens the run of a user's own workflow in a browser, as that user, who may see the runs of one
// namespace alone. The plan leads to the run, and the run names the plan. The role is that of docs/web-ui.md.
func TestOwnWorkflowInWebUI(t *testing.T) {
	t.Parallel()
	browser := webui.Open(t)
	const namespace = "story-webui-flow"
	w := newRolloutWorkerWithBase(t, namespace, "webui-flow-")
	w.start()
	w.begin("release", `{"new": "seen", "waves": [1], "image": "debian-13", "subnet": "front", "record": "seen-www", "heartbeat": 4000000000}`)
	awaitPlans(t, namespace, "release", 1, false)
	plan := plansOfWorkflow(t, namespace, "release")[0]
	ui := func() *exec.Cmd {
		return shared.Command(context.Background(), "kubectl-hykube", "ui", plan.Name, "-n", namespace, "--workflow", "--kubeconfig", w.kubeconfig)
	}
	if out, err := ui().CombinedOutput(); err == nil || !strings.Contains(string(out), "nonResourceURLs") {
		t.Fatalf("without a right to the Web UI: %v: %s", err, out)
	}
	page, err := os.ReadFile("../../docs/web-ui.md")
	if err != nil {
		t.Fatal(err)
	}
	_, role, _ := strings.Cut(string(page), "```yaml\n")
	role, _, _ = strings.Cut(role, "```")
	role = strings.NewReplacer("hykube.prod", "hykube."+namespace, "runs-of-prod", namespace, "name: alice", "name: flow").Replace(role)
	kubectlWith(t, role, "create", "-f", "-")

	address, enter := serveUI(t, ui())
	browser.See(enter, pageLimit, "RUNNING", "BlueGreen", "wait for the approval of plan "+namespace+"/"+plan.Name)
	runs := address + "/temporal/namespaces/hykube." + namespace + "/workflows"
	run := runs + "/release/" + plan.Annotations[v1alpha1.AnnotationWorkflowRunID]
	browser.See(run+"/memo", pageLimit, "hykubePlan1", namespace+"/"+plan.Name)
	browser.See(runs, pageLimit, "release", "BlueGreen")
	// After an approval, the page shows the next step of the workflow.
	kubectl(t, "hykube", "approve", plan.Name, "-n", namespace, "--digest", digestOf(t, plan.Name, namespace))
	awaitPlans(t, namespace, "release", 2, false)
	browser.See(run+"/memo", pageLimit, "hykubePlan2", plansOfWorkflow(t, namespace, "release")[1].Name)
	for _, message := range browser.Errors() {
		// The list has the namespaces of other users, so the role lacks it.
		if !strings.HasSuffix(message, "/temporal/api/v1/namespaces?") {
			t.Errorf("a page logged: %s", message)
		}
	}

	// No form of an address leads to the runs of another namespace.
	const api = "/temporal/api/v1/namespaces/hykube."
	for path, allowed := range map[string]bool{
		api + namespace + "/workflows":                                    true,
		api + namespace + "/workflows?namespace=hykube":                   true, // the parameter has no effect
		"/temporal/api/v1/namespaces":                                     false,
		"/temporal/api/v1/namespaces/hykube/workflows":                    false,
		api + namespace + "/../hykube/workflows":                          false,
		api + namespace + "/%2e%2e/hykube/workflows":                      false,
		api + namespace + "%2f..%2fhykube/workflows":                      false,
		api + namespace + "/..%2f..%2fnamespaces%2fhykube%2fworkflows":    false,
		api + namespace + "//temporal/api/v1/namespaces/hykube/workflows": false,
	} {
		out, err := shared.Command(t.Context(), "hykube-kubectl", "get", "--raw", path, "--kubeconfig", w.kubeconfig).CombinedOutput()
		if (err == nil) != allowed || strings.Contains(string(out), "plan.") {
			t.Errorf("%s: %v: %.300s; want that it is allowed: %t", path, err, out, allowed)
		}
	}
	kubectl(t, "hykube", "destroy", "--all", "-n", namespace, "--auto-approve")
}
