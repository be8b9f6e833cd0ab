package server_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/hykube/hykube/tests/harness"
)

// TestKubectl drives the fixed kinds as a person would.
func TestKubectl(t *testing.T) {
	kubectl := harness.Kubectl(t)
	namespace(t, "kubectl")
	manifest := `{"apiVersion": "v1", "kind": "List", "items": [
		{"apiVersion": "hykube.io/v1alpha1", "kind": "Provider", "metadata": {"name": "kubectl"}, "spec": {"source": "hykube/sim", "version": "~> 1.0"}},
		{"apiVersion": "hykube.io/v1alpha1", "kind": "ProviderConfig", "metadata": {"name": "default"}, "spec": {"provider": "kubectl"}},
		{"apiVersion": "hykube.io/v1alpha1", "kind": "Plan", "metadata": {"name": "p", "labels": {"a": "b"}}, "spec": {}}]}`
	for _, step := range []struct {
		args  string
		stdin string
		want  []string
	}{
		{"apply -f -", manifest, []string{"provider.hykube.io/kubectl created", "plan.hykube.io/p created"}},
		{"apply -f -", manifest, []string{"plan.hykube.io/p unchanged"}},
		{"apply --server-side --force-conflicts -f -", manifest, []string{"plan.hykube.io/p serverside-applied"}},
		{"diff -f -", manifest, nil},
		{"get prov kubectl", "", []string{"NAME", "SOURCE", "VERSION", "KINDS", "READY", "REASON", "AGE", "hykube/sim", "Installing"}},
		{"get pc", "", []string{"PROVIDER", "default"}},
		{"get plan -l a=b", "", []string{"SUMMARY", "APPROVED", "STATUS", "PROGRESS", "Planning"}},
		{"get plans --field-selector metadata.name=p -o name", "", []string{"plan.hykube.io/p"}},
		{"get hykube", "", []string{"plan.hykube.io/p", "providerconfig.hykube.io/default"}},
		{"get plan p -o yaml", "", []string{"refresh: Changed", "username: hykube:admin"}},
		{"describe plan p", "", []string{"Requested By"}},
		{"explain plan.spec.targets", "", []string{"these resources, and their dependencies"}},
		{"explain provider.spec", "", []string{"Version constraint"}},
		{"patch plan p --type=merge -p {\"metadata\":{\"labels\":{\"c\":\"d\"}}}", "", []string{"patched"}},
		{"patch pc default --type=json -p [{\"op\":\"add\",\"path\":\"/spec/limits\",\"value\":{\"concurrency\":3}}]", "", []string{"patched"}},
		{"label plan p e=f", "", []string{"labeled"}},
		{"wait --for=condition=Reconciling plan/p --timeout=5s", "", []string{"condition met"}},
		{"auth can-i approve plans", "", []string{"yes"}},
		{"auth whoami", "", []string{"hykube:admin"}},
		{"create configmap c --from-literal=a=b", "", []string{"created"}},
		{"create secret generic s --from-literal=a=b", "", []string{"created"}},
		{"api-resources --api-group=hykube.io", "", []string{"providerconfigs", "pc", "prov"}},
		{"delete plan p --dry-run=server", "", []string{"deleted"}},
		{"delete plan p", "", []string{"deleted"}},
		{"delete pc default", "", []string{"deleted"}},
		{"delete prov kubectl", "", []string{"deleted"}},
	} {
		cmd := exec.CommandContext(t.Context(), kubectl[0], slices.Concat(kubectl[1:], []string{"--kubeconfig", shared.Kubeconfig(), "-n", "kubectl", "--cache-dir", t.TempDir()}, strings.Fields(step.args))...)
		cmd.Stdin = strings.NewReader(step.stdin)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("kubectl %s: %v\n%s", step.args, err, out)
		}
		for _, want := range step.want {
			if !strings.Contains(string(out), want) {
				t.Errorf("kubectl %s does not say %q:\n%s", step.args, want, out)
			}
		}
	}
}
