package deploy

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/tests/harness"
)

var onKubernetes = flag.Bool("kubernetes", false, "build a kube-apiserver, and install the chart there")

// apiserver is Kubernetes' API server with etcd.
var apiserver = newTool("apiserver", "apiserver", ".", "-ldflags", "-X k8s.io/component-base/version.gitVersion=v"+kubernetesVersion+
	" -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor="+strings.Split(kubernetesVersion, ".")[1])

// cluster is a running API server, with a namespace that enforces the Pod Security Standard "restricted".
type cluster struct{ kubeconfig, kubectl string }

func startCluster(t *testing.T) *cluster {
	t.Helper()
	program, err := apiserver.build()
	if err != nil {
		t.Fatal(err)
	}
	binaries, err := harness.Built()
	if err != nil {
		t.Fatal(err)
	}
	dir, port := t.TempDir(), freePort(t)
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	cmd := exec.CommandContext(context.Background(), program, dir, port)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if text, err := os.ReadFile(log.Name()); t.Failed() && err == nil {
			t.Logf("the log of the API server ends:\n%s", text[max(0, len(text)-4000):])
		}
	})
	c := &cluster{filepath.Join(dir, "kubeconfig"), binaries.Path("hykube")}
	kubeconfig := `{"apiVersion":"v1","kind":"Config","current-context":"test","contexts":[{"name":"test","context":{"cluster":"test","user":"admin"}}],
"clusters":[{"name":"test","cluster":{"server":"https://127.0.0.1:` + port + `","insecure-skip-tls-verify":true}}],"users":[{"name":"admin","user":{"token":"admin"}}]}`
	if err := os.WriteFile(c.kubeconfig, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "the API server is ready", func() error {
		_, err := c.try(t, "", "get", "--raw", "/readyz")
		return err
	})
	c.run(t, "", "create", "namespace", "infra")
	c.run(t, "", "label", "namespace", "infra", "pod-security.kubernetes.io/enforce=restricted")
	return c
}

func (c *cluster) try(t *testing.T, stdin string, args ...string) (string, error) {
	cmd := exec.CommandContext(t.Context(), c.kubectl, append([]string{"kubectl", "--kubeconfig", c.kubeconfig, "--cache-dir", filepath.Dir(c.kubeconfig)}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("kubectl %v: %w\n%s", args, err, out)
	}
	return string(out), nil
}

func (c *cluster) run(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	out, err := c.try(t, stdin, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestKubernetes installs the chart on Kubernetes' API server, upgrades it and uninstalls it. The server must also accept
// the pods, which no controller creates here.
func TestKubernetes(t *testing.T) {
	if !*onKubernetes {
		t.Skip("make test-kubernetes builds a kube-apiserver for it")
	}
	c := startCluster(t)
	for _, file := range valuesFiles(t) {
		t.Run(strings.TrimSuffix(filepath.Base(file), "-values.yaml"), func(t *testing.T) {
			// This API server does not have the kinds of the Prometheus Operator.
			args := []string{"hykube", chart, "--namespace", "infra", "--kubeconfig", c.kubeconfig, "--values", file,
				"--set", "serviceMonitor.enabled=false,prometheusRule.enabled=false"}
			for _, step := range []struct {
				helm *tool
				verb string
			}{{helm3, "install"}, {helm4, "upgrade"}} {
				if _, err := step.helm.run(t, "", append([]string{step.verb}, args...)...); err != nil {
					t.Fatal(err)
				}
			}
			var sets appsv1.StatefulSetList
			if err := json.Unmarshal([]byte(c.run(t, "", "get", "statefulsets", "--namespace", "infra", "--output", "json")), &sets); err != nil || len(sets.Items) == 0 {
				t.Fatalf("%d StatefulSets: %v", len(sets.Items), err)
			}
			for i := range sets.Items { // that of the server, and that of the workers
				c.run(t, podOf(t, &sets.Items[i]), "create", "--dry-run=server", "--filename", "-")
			}
			hooks, err := helm4.run(t, "", "get", "hooks", "hykube", "--namespace", "infra", "--kubeconfig", c.kubeconfig)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(hooks, "kind: Pod") {
				c.run(t, hooks, "create", "--dry-run=server", "--filename", "-")
			}
			if _, err := helm4.run(t, "", "uninstall", "hykube", "--namespace", "infra", "--kubeconfig", c.kubeconfig); err != nil {
				t.Fatal(err)
			}
			if left := c.run(t, "", "get", "all,networkpolicies,poddisruptionbudgets,serviceaccounts", "--namespace", "infra", "--output", "name"); strings.TrimSpace(left) != "" {
				t.Errorf("after the uninstallation there are still %s", left)
			}
		})
	}
}

// podOf returns the pod that the controller of StatefulSets would create.
func podOf(t *testing.T, set *appsv1.StatefulSet) string {
	t.Helper()
	pod := corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: set.Name + "-0", Namespace: set.Namespace, Labels: set.Spec.Template.Labels, Annotations: set.Spec.Template.Annotations},
		Spec:       set.Spec.Template.Spec,
	}
	for _, claim := range set.Spec.VolumeClaimTemplates {
		source := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name + "-" + pod.Name}}
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: claim.Name, VolumeSource: source})
	}
	text, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
