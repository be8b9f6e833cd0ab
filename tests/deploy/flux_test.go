package deploy

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hykube/hykube/tests/harness"
	"github.com/hykube/hykube/tests/simcloud"
)

// fluxRun applies the chart of resources and a Stack with Flux's own library. It waits for all objects, or for those of
// one kind. The words after the kind are values of the chart.
func (r *release) fluxRun(t *testing.T, timeout, kind string, values ...string) error {
	t.Helper()
	args := []string{"template", "web", stackChart, "--namespace", r.namespace}
	for _, v := range values {
		args = append(args, "--set", v)
	}
	objects, err := helm4.run(t, "", args...)
	if err != nil {
		t.Fatal(err)
	}
	_, err = flux.run(t, objects, "--kubeconfig", r.server.Kubeconfig(), "--namespace", r.namespace, "--timeout", timeout, "--health-check", kind)
	return err
}

// fluxSucceeds expects Flux to report the objects as ready.
func (r *release) fluxSucceeds(t *testing.T, kind string, values ...string) {
	t.Helper()
	if err := r.fluxRun(t, "60s", kind, values...); err != nil {
		t.Fatalf("%v: %v", values, err)
	}
}

// fluxFails expects Flux to end the wait because one of the named objects is Failed, although the timeout is long.
func (r *release) fluxFails(t *testing.T, kind, failed string, values ...string) {
	t.Helper()
	start := time.Now()
	err := r.fluxRun(t, "2m", kind, values...)
	names := func(object string) bool { return strings.Contains(err.Error(), object+" status: 'Failed'") }
	if err == nil || !slices.ContainsFunc(strings.Fields(failed), names) {
		t.Errorf("%v: got %v, want an error that names %s", values, err, failed)
	}
	if took := time.Since(start); took > time.Minute {
		t.Errorf("%v: Flux ended the wait after %s, want at once", values, took)
	}
}

// TestFluxWaitsForStacks applies resources and a Stack as Flux does for a Kustomization, where plans and applies succeed or
// fail. docs/waiting.md describes these results.
func TestFluxWaitsForStacks(t *testing.T) {
	cloud := harness.NewCloud(t, simcloud.Config{})
	server := &harness.Server{Env: []string{"SIMCLOUD_ADDRESS=" + cloud.Address}}
	server.Serve(t)
	if err := server.Install(t.Context(), harness.Provider{Name: "sim", Source: "hykube/sim", Environment: []string{"SIMCLOUD_ADDRESS"}}); err != nil {
		t.Fatal(err)
	}
	for _, tool := range []*tool{helm4, flux} {
		if _, err := tool.build(); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]func(*testing.T, *release){
		"all-changes": func(t *testing.T, r *release) { fluxChanges(t, r, "") }, "stack-changes": func(t *testing.T, r *release) { fluxChanges(t, r, "Stack") },
		"all-apply-fails": fluxAllApplyFails, "stack-apply-fails": fluxStackApplyFails, "manual": fluxManual,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &release{flux, server, cloud, "flux-" + name}
			if _, err := server.Kubectl(t.Context(), "", "create", "namespace", r.namespace); err != nil {
				t.Fatal(err)
			}
			test(t, r)
		})
	}
}

// fluxChanges makes changes that succeed, and plans that fail. The cloud must have the objects when Flux reports them.
func fluxChanges(t *testing.T, r *release, kind string) {
	const noSubnet = "subnet=${sim_subnet.nowhere.id}"
	stack := "Stack/" + r.namespace + "/web"
	r.fluxFails(t, kind, stack, noSubnet)
	r.has(t)
	r.fluxSucceeds(t, kind)
	r.has(t, "network", "subnet", "instance:small", "dns-record")
	r.fluxSucceeds(t, kind) // nothing changed
	r.fluxSucceeds(t, kind, "size=medium")
	r.has(t, "network", "subnet", "instance:medium", "dns-record")
	r.fluxFails(t, kind, stack, noSubnet)
	r.has(t, "network", "subnet", "instance:medium", "dns-record")
	r.fluxSucceeds(t, kind, "size=large")
	r.has(t, "network", "subnet", "instance:large", "dns-record")
}

// fluxAllApplyFails waits for all objects after an apply that failed. Flux names those of them that are Failed first. The record, which was skipped, is Failed until the
// next apply begins, so Flux may report a failure once more before the correction.
func fluxAllApplyFails(t *testing.T, r *release) {
	remove := r.fault(t, "create")
	r.fluxFails(t, "", fmt.Sprintf("Stack/%[1]s/web sim-instance/%[1]s/web sim-dns-record/%[1]s/www", r.namespace))
	r.has(t, "network", "subnet")
	remove()
	if err := r.fluxRun(t, "60s", "", "size=medium"); err != nil && !strings.Contains(err.Error(), "sim-dns-record/"+r.namespace+"/www status: 'Failed'") {
		t.Errorf("after the correction: %v", err)
	}
	r.fluxSucceeds(t, "Stack", "size=medium")
	r.fluxSucceeds(t, "", "size=medium")
	r.has(t, "network", "subnet", "instance:medium", "dns-record")
}

// fluxStackApplyFails waits for the Stack alone, which shows the correction at once.
func fluxStackApplyFails(t *testing.T, r *release) {
	remove := r.fault(t, "create")
	r.fluxFails(t, "Stack", "Stack/"+r.namespace+"/web")
	r.has(t, "network", "subnet")
	remove()
	r.fluxSucceeds(t, "Stack", "size=medium")
	r.has(t, "network", "subnet", "instance:medium", "dns-record")
}

// fluxManual waits for a plan that a person must approve.
func fluxManual(t *testing.T, r *release) {
	// Flux's library says that it timed out only if no poll begins at the end of the timeout, and it polls each second.
	err := r.fluxRun(t, "5500ms", "", "approval=Manual")
	if err == nil || !strings.Contains(err.Error(), "timeout waiting for") || !strings.Contains(err.Error(), "Stack/"+r.namespace+"/web status: 'InProgress'") {
		t.Errorf("before the approval: %v", err)
	}
	r.kubectl(t, "", "hykube", "approve", "web-1", "--digest", r.kubectl(t, "", "get", "plan", "web-1", "-o", "jsonpath={.status.digest}"))
	r.fluxSucceeds(t, "", "approval=Manual")
	r.has(t, "network", "subnet", "instance:small", "dns-record")
}
