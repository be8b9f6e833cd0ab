package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

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
	cmd := shared.Command(context.Background(), "kubectl-hykube", append([]string{"ui"}, args...)...)
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
