package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/hykube/hykube/tests/simcloud"
)

// TestExamples applies each folder of examples, plans again, and destroys it. hack/demo.sh does so with examples/first.
func TestExamples(t *testing.T) {
	for _, tt := range []struct {
		reason string
		// The test applies folders in this order. before holds objects that the cloud has already, by kind.
		folders []string
		before  map[string]map[string]any
		// kept lists the objects that intentionally stay in the cloud.
		kept string
	}{
		{"replacements and conditions", []string{"replace"}, nil, "disk replace-archive"},
		{"secrets", []string{"secrets"}, nil, ""},
		{"data sources, functions and actions", []string{"lookup"}, nil, ""},
		{"imports", []string{"import"}, map[string]map[string]any{
			"bucket": {"name": "import-logs"}, "network": {"name": "import-main", "cidr": "10.60.0.0/16"},
		}, ""},
		{"two namespaces", []string{"shared", "tenant"}, nil, ""},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			t.Parallel()
			for kind, fields := range tt.before {
				if _, err := cloud.Create(t.Context(), kind, fields); err != nil {
					t.Fatal(err)
				}
			}
			for _, folder := range tt.folders {
				kubectl(t, "hykube", "apply", "-f", filepath.Join("..", "..", "examples", folder), "--auto-approve")
				kubectl(t, "hykube", "plan", "-n", folder, "--refresh=All", "--detailed-exitcode")
			}
			for i := len(tt.folders) - 1; i >= 0; i-- {
				folder := tt.folders[i]
				if folder == "replace" { // its network must not be destroyed
					kubectl(t, "patch", "sim-network", "main", "-n", folder, "--type=merge", "-p", `{"lifecycle":{"preventDestroy":false}}`)
				}
				kubectl(t, "hykube", "destroy", "--all", "-n", folder, "--auto-approve")
			}
			for _, folder := range tt.folders {
				left, err := cloud.Calls(t.Context(), simcloud.Filter{Effect: true, Name: folder + "-*"})
				if err != nil {
					t.Fatal(err)
				}
				n := 0
				for _, call := range left {
					switch call.Op {
					case "create":
						n++
					case "delete":
						n--
					}
				}
				if n != strings.Count(tt.kept, " "+folder+"-") {
					t.Errorf("of examples/%s there is left in the cloud more or less than %q:\n%+v", folder, tt.kept, left)
				}
			}
		})
	}
}

// TestExampleOfStacks applies examples/stack as docs/stacks.md does: a person approves the network, and the rest follows.
func TestExampleOfStacks(t *testing.T) {
	t.Parallel()
	of := func(args ...string) string {
		t.Helper()
		out := kubectl(t, append(args, "-n", "stack")...)
		t.Logf("kubectl %s\n%s", strings.Join(args, " "), out)
		return out
	}
	awaits := func(stack, reason string) {
		t.Helper()
		of("wait", "stack/"+stack, "--timeout=60s", `--for=jsonpath={.status.conditions[?(@.type=="Ready")].reason}=`+reason)
	}
	of("apply", "-f", filepath.Join("..", "..", "examples", "stack"))
	awaits("network", "AwaitingApproval")
	awaits("web", "AwaitingStack")
	of("get", "stacks")
	of("hykube", "stack", "status", "network")
	of("hykube", "approve", "network-1", "--digest", of("get", "plan", "network-1", "-o", "jsonpath={.status.digest}"))
	of("wait", "stack/network", "stack/web", "--for=condition=Ready", "--timeout=60s")
	if out := of("hykube", "stack", "outputs", "web"); !strings.Contains(out, `"https://stack-www.`) {
		t.Errorf("outputs: %s", out)
	}
	of("get", "stacks")
	of("hykube", "stack", "status", "web")
	of("hykube", "stack", "history", "web")
	of("get", "configmap/web-outputs", "secret/web-secrets")

	// The plans of a stack destroy what is deleted, each stack after the objects that it selects.
	of("delete", "sim-instance,sim-dns-record,sim-password", "-l", "stack=web", "--wait=false")
	of("wait", "sim-instance/web", "--for=delete", "--timeout=60s")
	of("delete", "sim-subnet,sim-network", "-l", "stack=network", "--wait=false")
	of("wait", "stack/network", "--timeout=60s", `--for=jsonpath={.status.plan.name}=network-2`)
	of("wait", "plan/network-2", "--timeout=60s", "--for=condition=Planned")
	of("hykube", "approve", "network-2", "--digest", of("get", "plan", "network-2", "-o", "jsonpath={.status.digest}"))
	of("wait", "sim-network/main", "--for=delete", "--timeout=60s")
}
