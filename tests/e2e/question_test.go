package e2e

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/hykube/hykube/tests/harness"
	"github.com/hykube/hykube/tests/simcloud"
)

// asking is an `apply -f` that shows its plan and asks.
type asking struct {
	t      *testing.T
	cmd    *exec.Cmd
	answer io.WriteCloser

	mu     sync.Mutex
	output bytes.Buffer
}

// Write implements io.Writer for the output of the command.
func (a *asking) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.output.Write(p)
}

// startAsking starts `apply -f` and waits for its question. The command ends with the test.
func startAsking(t *testing.T, s *harness.Server, namespace, file string) *asking {
	t.Helper()
	a := &asking{t: t, cmd: s.Command(t.Context(), "kubectl-hykube", "apply", "-n", namespace, "-f", file)}
	a.cmd.Stdout, a.cmd.Stderr = a, a
	var err error
	if a.answer, err = a.cmd.StdinPipe(); err == nil {
		err = a.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	a.await("Enter a value:")
	return a
}

// await waits for a text in the output.
func (a *asking) await(text string) {
	a.t.Helper()
	harness.Eventually(a.t, "the command says "+text, func() error {
		a.mu.Lock()
		defer a.mu.Unlock()
		if !strings.Contains(a.output.String(), text) {
			return fmt.Errorf("it says:\n%s", a.output.String())
		}
		return nil
	})
}

// yes answers the question, and ends the input. It returns the exit code and the output.
func (a *asking) yes() (code int, output string) {
	a.t.Helper()
	if _, err := io.WriteString(a.answer, "yes\n"); err != nil {
		a.t.Fatal(err)
	}
	if err := a.answer.Close(); err != nil {
		a.t.Fatal(err)
	}
	_ = a.cmd.Wait() // the exit code says the same
	return a.cmd.ProcessState.ExitCode(), a.output.String()
}

// writeFile writes a file with a network, whose name in the cloud begins with that of the namespace.
func writeFile(t *testing.T, file, namespace, spec string) {
	t.Helper()
	text := `{"apiVersion":"sim.hykube.io/v1","kind":"sim-network","metadata":{"name":"main"},"spec":{"name":"` + namespace + `-main",` + spec + `}}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// policyOf returns a PlanPolicy with one rule for all plans.
func policyOf(effect string) string {
	return `{"apiVersion":"hykube.io/v1alpha1","kind":"PlanPolicy","metadata":{"name":"late"},"spec":{"rules":[{"name":"all","when":"true","message":"no",` + effect + `}]}}`
}

// TestApplyDoesWhatTheQuestionShowed changes the world while `apply -f` asks, and then answers yes. The command makes the changes
// that it showed, or none.
func TestApplyDoesWhatTheQuestionShowed(t *testing.T) {
	for name, tt := range map[string]struct {
		// exists is true if the network exists before, with other tags than in the file. refers is true if its tags come from a
		// ConfigMap.
		exists, refers bool
		// meanwhile acts while the command asks.
		meanwhile func(t *testing.T, namespace, file string)
		code      int
		says      string
		// creates and updates count the calls that change the network after the question.
		creates, updates int
	}{
		"nothing": {says: "1 added", creates: 1},
		"the file changes": {says: "1 added", creates: 1, meanwhile: func(t *testing.T, namespace, file string) {
			writeFile(t, file, namespace+"-other", `"cidr":"10.9.0.0/16"`)
		}},
		"another user creates the object": {code: 1, says: `conflict with "kubectl-create"`, meanwhile: func(t *testing.T, namespace, _ string) {
			kubectlWith(t, `{"apiVersion":"sim.hykube.io/v1","kind":"sim-network","metadata":{"name":"main"},"spec":{"name":"`+namespace+`-main","cidr":"10.9.0.0/16"}}`,
				"create", "-n", namespace, "-f", "-")
		}},
		"another user edits the object": {exists: true, code: 1, says: "These differ:\n  sim_network.main: tags", meanwhile: func(t *testing.T, namespace, _ string) {
			kubectl(t, "patch", "-n", namespace, "sim-network", "main", "--type=merge", "-p", `{"spec":{"tags":{"theirs":"1"}}}`)
		}},
		"another user edits a configmap": {exists: true, refers: true, code: 1, says: "These differ:\n  sim_network.main: tags", meanwhile: func(t *testing.T, namespace, _ string) {
			kubectl(t, "patch", "-n", namespace, "configmap", "team", "--type=merge", "-p", `{"data":{"name":"theirs"}}`)
		}},
		"another user deletes the object": {exists: true, code: 1, says: "undelete", meanwhile: func(t *testing.T, namespace, _ string) {
			kubectl(t, "delete", "-n", namespace, "sim-network", "main", "--wait=false")
		}},
		"a policy refuses the plan": {code: 3, says: "a policy refuses", meanwhile: func(t *testing.T, namespace, _ string) {
			kubectlWith(t, policyOf(`"effect":"Deny"`), "create", "-n", namespace, "-f", "-")
		}},
		"a policy wants another approver": {code: 3, says: "because yours does not count", meanwhile: func(t *testing.T, namespace, _ string) {
			kubectlWith(t, policyOf(`"effect":"RequireApprovals","approvals":{"count":1,"excludeRequester":true}`), "create", "-n", namespace, "-f", "-")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := "asked-" + strings.ReplaceAll(name, " ", "-")
			newNamespace(t, namespace)
			file := filepath.Join(t.TempDir(), "main.yaml")
			writeFile(t, file, namespace, `"cidr":"10.0.0.0/16"`)
			if tt.exists {
				kubectl(t, "hykube", "apply", "-n", namespace, "-f", file, "--auto-approve")
				writeFile(t, file, namespace, `"cidr":"10.0.0.0/16","tags":{"ours":"1"}`)
			}
			if tt.refers {
				kubectl(t, "create", "-n", namespace, "configmap", "team", "--from-literal=name=ours")
				writeFile(t, file, namespace, `"cidr":"10.0.0.0/16","tags":{"ours":"${configmap.team.name}"}`)
			}
			before := callsOf(t, namespace, "create")
			a := startAsking(t, shared, namespace, file)
			if tt.meanwhile != nil {
				tt.meanwhile(t, namespace, file)
			}
			code, out := a.yes()
			if code != tt.code || !strings.Contains(out, tt.says) {
				t.Errorf("exit code %d, want %d and %q:\n%s", code, tt.code, tt.says, out)
			}
			if n := callsOf(t, namespace, "create") - before; n != tt.creates {
				t.Errorf("%d creates, want %d", n, tt.creates)
			}
			if n := callsOf(t, namespace, "update"); n != tt.updates {
				t.Errorf("%d updates, want %d", n, tt.updates)
			}
		})
	}
}

// callsOf counts the calls for the networks of a namespace.
func callsOf(t *testing.T, namespace, op string) int {
	t.Helper()
	n, err := cloud.CountCalls(t.Context(), simcloud.Filter{Name: namespace + "-*", Op: op})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestApplySurvivesKills kills the server while `apply -f` asks, and later the command while it records and applies. In both cases
// the network is made once: the answer counts after the server has started again, and the next command continues.
func TestApplySurvivesKills(t *testing.T) {
	s := &harness.Server{Dir: t.TempDir(), Env: []string{"SIMCLOUD_ADDRESS=" + cloud.Address}}
	s.Serve(t)
	if err := s.Install(t.Context(), harness.Provider{Name: "sim", Source: "hykube/sim", Environment: []string{"SIMCLOUD_ADDRESS"}}); err != nil {
		t.Fatal(err)
	}
	run := func(stdin string, args ...string) {
		t.Helper()
		if _, err := s.Kubectl(t.Context(), stdin, args...); err != nil {
			t.Fatal(err)
		}
	}
	begin := func(namespace string) (a *asking, file string) {
		t.Helper()
		run("", "create", "namespace", namespace)
		run(simConfig, "create", "-n", namespace, "-f", "-")
		file = filepath.Join(t.TempDir(), "main.yaml")
		writeFile(t, file, namespace, `"cidr":"10.0.0.0/16"`)
		return startAsking(t, s, namespace, file), file
	}
	a, _ := begin("asked-server-killed")
	config, err := s.Config()
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := strings.Cut(strings.TrimPrefix(config.Host, "https://"), ":")
	s.Kill()
	if s.Port, err = strconv.Atoi(port); err != nil { // the command keeps the address
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if code, out := a.yes(); code != 0 || !strings.Contains(out, "1 added") {
		t.Errorf("after the server was killed, the exit code is %d:\n%s", code, out)
	}
	a, file := begin("asked-command-killed")
	if _, err := io.WriteString(a.answer, "yes\n"); err != nil {
		t.Fatal(err)
	}
	a.await("sim-network.sim.hykube.io/main created")
	if err := a.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = a.cmd.Wait() // it was killed
	run("", "hykube", "apply", "-n", "asked-command-killed", "-f", file, "--auto-approve")
	for _, namespace := range []string{"asked-server-killed", "asked-command-killed"} {
		if n := callsOf(t, namespace, "create"); n != 1 {
			t.Errorf("%s: %d creates, want 1", namespace, n)
		}
	}
}
