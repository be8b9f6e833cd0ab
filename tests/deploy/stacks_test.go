package deploy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/tests/harness"
	"github.com/hykube/hykube/tests/simcloud"
)

// stackChart is a chart of resources with a Stack.
const stackChart = "testdata/web"

// release is a release of that chart on a Hykube server, in a namespace of its own.
type release struct {
	helm      *tool
	server    *harness.Server
	cloud     *harness.Cloud
	namespace string
}

// helmOnly runs Helm with --wait.
func (r *release) helmOnly(t *testing.T, timeout, verb string, args ...string) error {
	words := []string{verb, "web"}
	switch verb {
	case "install", "upgrade":
		words = append(words, stackChart)
	case "rollback": // the first argument is the revision
		words, args = append(words, args[0]), args[1:]
	}
	words = append(words, "--namespace", r.namespace, "--kubeconfig", r.server.Kubeconfig(), "--wait", "--timeout", timeout)
	_, err := r.helm.run(t, "", append(words, args...)...)
	return err
}

// run runs Helm with --wait. Helm 3 does not wait for kinds that it does not know, so the plugin waits for the stack after it.
func (r *release) run(t *testing.T, timeout, verb string, args ...string) error {
	err := r.helmOnly(t, timeout, verb, args...)
	if r.helm == helm4 || verb == "uninstall" || err != nil {
		return err
	}
	_, err = r.server.Kubectl(t.Context(), "", "hykube", "stack", "wait", "web", "-n", r.namespace, "--timeout", timeout)
	return err
}

// succeeds runs Helm, and fails the test if Helm fails.
func (r *release) succeeds(t *testing.T, verb string, args ...string) {
	t.Helper()
	if err := r.run(t, "60s", verb, args...); err != nil {
		t.Fatalf("%s: %v", verb, err)
	}
}

// fails runs Helm and expects an error, and a reason of the condition Ready of the stack. Helm 4 waits until the
// timeout if a plan fails, because the resources wait for the next plan.
func (r *release) fails(t *testing.T, timeout, reason, verb string, args ...string) {
	t.Helper()
	err := r.run(t, timeout, verb, args...)
	got := r.kubectl(t, "", "get", "stack", "web", "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].reason}`)
	if err == nil || got != reason {
		t.Errorf("%s: got %v and the reason %q, want an error and %q", verb, err, got, reason)
	}
}

// blocks expects that the wait for the deletion of the stack ends with an error that names a resource.
func (r *release) blocks(t *testing.T, address string) {
	t.Helper()
	_, err := r.server.Kubectl(t.Context(), "", "hykube", "stack", "wait", "web", "-n", r.namespace)
	if err == nil || !strings.Contains(err.Error(), address) {
		t.Errorf("the stack does not name %s: %v", address, err)
	}
}

// fault makes calls of the cloud for an operation on the instance of the release fail until the test ends.
func (r *release) fault(t *testing.T, op string) (remove func()) {
	t.Helper()
	f, err := r.cloud.Fault(t.Context(), simcloud.Fault{Kind: "instance", Op: op, Name: r.namespace + "-*", Status: 422})
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := r.cloud.RemoveFault(t.Context(), f.ID); err != nil {
			t.Fatal(err)
		}
	}
}

// has expects the cloud to have the objects of the release, each as KIND or KIND:SIZE. The cloud must have them when Helm
// returns, so nothing polls here.
func (r *release) has(t *testing.T, want ...string) {
	t.Helper()
	got := []string{}
	for _, kind := range []string{"network", "subnet", "instance", "dns-record"} {
		objects, err := r.cloud.Objects(t.Context(), kind, "")
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			if name, _ := o["name"].(string); strings.HasPrefix(name, r.namespace+"-") {
				if kind == "instance" {
					kind = fmt.Sprintf("instance:%v", o["size"])
				}
				got = append(got, kind)
			}
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the cloud has %v, want %v", got, want)
	}
}

// kubectl runs kubectl in the namespace of the release.
func (r *release) kubectl(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	out, err := r.server.Kubectl(t.Context(), stdin, append(args, "-n", r.namespace)...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// approves runs Helm while its plan waits for an approval, approves the plan, and expects Helm to succeed after that.
func (r *release) approves(t *testing.T, plan, verb string, args ...string) {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- r.run(t, "60s", verb, args...) }()
	harness.Eventually(t, plan+" waits for an approval", func() error {
		_, err := r.server.Kubectl(t.Context(), "", "wait", "stack/web", "-n", r.namespace, "--timeout=1s",
			`--for=jsonpath={.status.conditions[?(@.type=="Ready")].reason}=AwaitingApproval`)
		if err == nil && r.kubectl(t, "", "get", "stack", "web", "-o", "jsonpath={.status.plan.name}") != plan {
			return fmt.Errorf("another plan waits")
		}
		return err
	})
	select {
	case err := <-ended:
		t.Fatalf("%s ended before the approval: %v", verb, err)
	default:
	}
	r.kubectl(t, "", "hykube", "approve", plan, "--digest", r.kubectl(t, "", "get", "plan", plan, "-o", "jsonpath={.status.digest}"))
	if err := <-ended; err != nil {
		t.Errorf("%s after the approval: %v", verb, err)
	}
}

// TestHelmWaitsForStacks installs, upgrades, rolls back and uninstalls a chart of resources and a Stack with Helm 3 and
// Helm 4, where plans and applies succeed or fail. docs/waiting.md describes these results.
func TestHelmWaitsForStacks(t *testing.T) {
	cloud := harness.NewCloud(t, simcloud.Config{})
	server := &harness.Server{Env: []string{"SIMCLOUD_ADDRESS=" + cloud.Address}}
	server.Serve(t)
	if err := server.Install(t.Context(), harness.Provider{Name: "sim", Source: "hykube/sim", Environment: []string{"SIMCLOUD_ADDRESS"}}); err != nil {
		t.Fatal(err)
	}
	for _, helm := range []*tool{helm3, helm4} {
		if _, err := helm.build(); err != nil {
			t.Fatal(err)
		}
		for name, test := range map[string]func(*testing.T, *release){
			"changes": helmChanges, "install-plan-fails": helmInstallPlanFails, "install-apply-fails": helmInstallApplyFails,
			"uninstall-plan-fails": helmUninstallPlanFails, "uninstall-apply-fails": helmUninstallApplyFails, "manual": helmManual,
		} {
			t.Run(helm.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				r := &release{helm, server, cloud, helm.name + "-" + name}
				if _, err := server.Kubectl(t.Context(), "", "create", "namespace", r.namespace); err != nil {
					t.Fatal(err)
				}
				test(t, r)
			})
		}
	}
}

func helmChanges(t *testing.T, r *release) {
	const noSubnet = "subnet=${sim_subnet.nowhere.id}"
	const planFails, applyFails = v1alpha1.ReasonPlanFailed, v1alpha1.ReasonApplyFailed

	r.succeeds(t, "install")
	r.has(t, "network", "subnet", "instance:small", "dns-record")
	r.succeeds(t, "upgrade", "--set", "size=medium") // revision 2
	r.has(t, "network", "subnet", "instance:medium", "dns-record")

	r.fails(t, "4s", planFails, "upgrade", "--set", noSubnet) // revision 3
	if r.helm == helm3 {                                      // by itself, it does not notice
		if err := r.helmOnly(t, "4s", "upgrade", "--set", noSubnet+",size=tiny"); err != nil {
			t.Errorf("Helm 3 waits for a Stack now, so correct docs/waiting.md: %v", err)
		}
	}
	r.fails(t, "4s", planFails, "rollback", "3")
	r.succeeds(t, "rollback", "2")
	r.has(t, "network", "subnet", "instance:medium", "dns-record")

	remove := r.fault(t, "update")
	r.fails(t, "60s", applyFails, "upgrade", "--set", "size=large")
	r.fails(t, "60s", applyFails, "rollback", "1")
	remove()
	// The stack halts after the failure, so it does not repeat the same change. The infrastructure is still as in revision 2.
	r.fails(t, "60s", applyFails, "rollback", "1")
	r.succeeds(t, "rollback", "2")
	r.succeeds(t, "upgrade", "--set", "size=large")
	r.has(t, "network", "subnet", "instance:large", "dns-record")

	// Only the stack shows that a removed resource is not destroyed yet.
	r.succeeds(t, "upgrade", "--set", "record=false,size=large")
	r.has(t, "network", "subnet", "instance:large")
	r.succeeds(t, "uninstall")
	r.has(t)
	r.succeeds(t, "install") // it takes over the stack that helm uninstall left
	r.has(t, "network", "subnet", "instance:small", "dns-record")
}

func helmInstallPlanFails(t *testing.T, r *release) {
	r.fails(t, "4s", v1alpha1.ReasonPlanFailed, "install", "--set", "subnet=${sim_subnet.nowhere.id}")
	r.has(t)
}

func helmInstallApplyFails(t *testing.T, r *release) {
	r.fault(t, "create")
	r.fails(t, "60s", v1alpha1.ReasonApplyFailed, "install")
	r.has(t, "network", "subnet")
}

func helmUninstallPlanFails(t *testing.T, r *release) {
	r.succeeds(t, "install", "--set", "protected=true")
	r.fails(t, "4s", v1alpha1.ReasonBlocked, "uninstall")
	r.has(t, "network", "subnet", "instance:small", "dns-record")
	r.blocks(t, "sim_network.main")
}

func helmUninstallApplyFails(t *testing.T, r *release) {
	r.succeeds(t, "install")
	remove := r.fault(t, "delete")
	r.fails(t, "6s", v1alpha1.ReasonApplyFailed, "uninstall")
	r.has(t, "network", "subnet", "instance:small")
	r.blocks(t, "sim_instance.web")
	remove()
}

func helmManual(t *testing.T, r *release) {
	r.approves(t, "web-1", "install", "--set", "approval=Manual")
	r.has(t, "network", "subnet", "instance:small", "dns-record")
	r.fails(t, "4s", v1alpha1.ReasonAwaitingApproval, "upgrade", "--set", "approval=Manual,size=medium")
	r.has(t, "network", "subnet", "instance:small", "dns-record")
	r.approves(t, "web-3", "upgrade", "--set", "approval=Manual,size=large")
	r.has(t, "network", "subnet", "instance:large", "dns-record")
	r.approves(t, "web-4", "rollback", "1")
	r.has(t, "network", "subnet", "instance:small", "dns-record")
	r.approves(t, "web-5", "uninstall")
	r.has(t)
}
