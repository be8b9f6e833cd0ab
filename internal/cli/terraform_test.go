package cli_test

import (
	"strings"
	"testing"

	"github.com/hykube/hykube/internal/cli"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/tests/clitest"
)

// TestTerraformHints types Terraform's commands, and expects the corresponding command of the plugin, without any
// effect.
func TestTerraformHints(t *testing.T) {
	f := clitest.New(t, cli.Command)
	f.Planning = clitest.Creates
	for _, tc := range []struct {
		args string
		want string
	}{
		{"show", "name a plan; `kubectl get plans` lists them"},
		{"plan -out x", `there is no flag "out": the server stores the plan`},
		{"plan -out=x", `there is no flag "out": the server stores the plan`},
		{"plan --out x", `there is no flag "out": the server stores the plan`},
		{"plan -target=sim_network.main", "flags with long names have two dashes: --target=sim_network.main"},
		{"plan -target sim_network.main", "flags with long names have two dashes: --target"},
		{"plan -destroy", "flags with long names have two dashes: --destroy"},
		{"plan -full", "flags with long names have two dashes: --full"},
		{"apply -auto-approve", "flags with long names have two dashes: --auto-approve"},
		{"plan -lock=false", `there is no flag "lock": plans need no state lock`},
		{"plan -no-color", "set NO_COLOR=1"},
		{"plan -var region=eu", "flags with long names have two dashes: --var"},
		{"show -var region=eu", `there is no flag "var": plan and apply have --var for the variables of -f DIR`},
		{"plan -state=x", "the server stores the state"},
		{"destroy -target=sim_network.main", `there is no flag "target": name resources after the command`},
		{"search", "wrong number of arguments (0): write kubectl hykube search TEXT"},
		{"state mv a", "wrong number of arguments (1): write kubectl hykube state mv"},
		{"plan --nonsense", "unknown flag: --nonsense"},
		{"plan -x", "unknown shorthand flag: 'x' in -x"},
		{"apply plan-x7k2d --auto-approve", `apply takes no arguments such as "plan-x7k2d"`},
		{"plan sim_network.main", "--target TYPE.NAME"},
		{"init", "a Provider object installs its provider"},
		{"validate", "no files are named: use -f PATH"},
		{"get pods", "use kubectl: kubectl get pods"},
		{"aply", `did you mean "apply"?`},
		{"aply -f first.yaml", `unknown verb "aply": did you mean "apply"?`},
		{"state lsit -o name", `did you mean "list"?`},
		{"state lst", `did you mean "list"?`},
		{"provider lst", `did you mean "list"?`},
	} {
		_, errOut, code := f.Run(strings.Fields(tc.args)...)
		if code != exit.Failed || !strings.Contains(errOut, tc.want) {
			t.Errorf("%s: code %d: %s", tc.args, code, errOut)
		}
	}
	if len(f.Calls) > 0 {
		t.Errorf("something was asked of the server: %v", f.Calls)
	}
	// A flag that only resembles one of Terraform's gets no hint.
	if _, errOut, code := f.Run("plan", "-l", "lock=false", "-n", "default", "-o", "name"); code != exit.Done {
		t.Errorf("code %d: %s", code, errOut)
	}
}
