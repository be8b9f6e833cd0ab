package plan_test

import (
	"encoding/json"
	"strings"
	"testing"

	tfjson "github.com/hashicorp/terraform-json"

	"github.com/hykube/hykube/internal/cli"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/tests/clitest"
)

func TestShow(t *testing.T) {
	f := clitest.New(t, cli.Command)
	f.Planning = clitest.Creates
	f.Run("plan", "--record", "-f", clitest.Write(t, clitest.FirstFiles))
	out, errOut, code := f.Run("show", "plan-x7k2d", "-o", "terraform-json")
	if code != 0 {
		t.Fatal(errOut)
	}
	var p tfjson.Plan
	if err := json.Unmarshal([]byte(out), &p); err != nil {
		t.Fatal(err)
	}
	if len(p.ResourceChanges) != 2 || !p.ResourceChanges[0].Change.Actions.Create() || p.ResourceChanges[0].Name != "main" || p.ResourceChanges[0].Change.Before != nil {
		t.Errorf("resource changes: %s", out)
	}
	if !strings.Contains(out, `"before":null`) || !strings.Contains(out, `"after_unknown":{"id":true}`) {
		t.Errorf("not as terraform writes it: %s", out)
	}
	out, _, _ = f.Run("show", "plan-x7k2d")
	if !strings.Contains(out, "--digest sha256:abc") || !strings.Contains(out, "# sim_network.main will be created") {
		t.Error(out)
	}
	out, _, _ = f.Run("show", "plan-x7k2d", "-o", "yaml")
	if !strings.Contains(out, "kind: Plan") || !strings.Contains(out, "address: sim_network.main") {
		t.Error(out)
	}
	_, errOut, code = f.Run("show", "other")
	if code != exit.Failed || !strings.Contains(errOut, `no plan "other" in namespace "default"`) {
		t.Error(errOut)
	}
}

func TestApproveDiscardCancel(t *testing.T) {
	f := clitest.New(t, cli.Command)
	f.Planning = clitest.Creates
	f.Run("plan", "--record", "-f", clitest.Write(t, clitest.FirstFiles))
	if _, errOut, code := f.Run("approve", "plan-x7k2d", "--digest", "sha256:other"); code != exit.Stale || !strings.Contains(errOut, "isn't the plan that you read") {
		t.Errorf("code %d: %s", code, errOut)
	}
	if out, errOut, code := f.Run("approve", "plan-x7k2d", "--digest", "sha256:abc", "-m", "fine"); code != exit.Done || !strings.Contains(out, "plan.hykube.io/plan-x7k2d approved") || !strings.Contains(out, "Apply complete!") {
		t.Errorf("code %d: %s %s", code, out, errOut)
	}
	if _, errOut, code := f.Run("discard", "plan-x7k2d"); code != exit.Failed || !strings.Contains(errOut, "approved already") {
		t.Errorf("code %d: %s", code, errOut)
	}
	if out, _, code := f.Run("cancel", "plan-x7k2d"); code != exit.Done || !strings.Contains(out, "has ended already") {
		t.Errorf("code %d: %s", code, out)
	}
	if out, _, code := f.Run("status", "plan-x7k2d"); code != exit.Done || !strings.Contains(out, "applied") || !strings.Contains(out, "2 of 2 made") {
		t.Errorf("code %d: %s", code, out)
	}
}
