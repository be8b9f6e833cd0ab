package deploy

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/hykube/hykube/tests/harness"
	"github.com/hykube/hykube/tests/harness/database"
)

// container is the container of the chart as a process of this machine: its user, environment, arguments and probes.
type container struct {
	corev1.Container
	bin string
	// paths replaces paths of the container by paths of this machine.
	paths *strings.Replacer
	// user is the user of the process; nil if the tests may not choose one.
	user *syscall.SysProcAttr
}

// newContainer renders the chart with further arguments of Helm. dir stands for the file system of the container.
func newContainer(t *testing.T, dir string, args ...string) *container {
	t.Helper()
	binaries, err := harness.Built()
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := render(t, helm4, append(args, "--show-only", "templates/statefulset.yaml")...)
	if err != nil {
		t.Fatal(err)
	}
	set := decode(t, rendered)[0].object.(*appsv1.StatefulSet)
	c := &container{Container: set.Spec.Template.Spec.Containers[0], bin: binaries.Path("hykube")}
	var pairs []string
	for _, m := range c.VolumeMounts {
		if m.MountPath != "/tmp" {
			pairs = append(pairs, m.MountPath, filepath.Join(dir, m.MountPath))
		}
	}
	c.paths = strings.NewReplacer(pairs...)
	if os.Geteuid() == 0 {
		id := uint32(*set.Spec.Template.Spec.SecurityContext.RunAsUser)
		c.user = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: id, Gid: id}}
	}
	return c
}

// directory makes a directory that stands for the file system of a container, with its volume.
func directory(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "hykube-container-") // every user may enter it, unlike t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	volume := filepath.Join(dir, "var/lib/hykube")
	if err := os.MkdirAll(volume, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, filepath.Join(dir, "var"), filepath.Join(dir, "var/lib")} {
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(volume, 0o777); err != nil {
		t.Fatal(err)
	}
	return dir
}

// mount writes a file that a Secret or a ConfigMap would provide.
func mount(t *testing.T, dir, path, content string) {
	t.Helper()
	path = filepath.Join(dir, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o440); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(path, 0, 65532); err != nil {
			t.Fatal(err)
		}
	}
}

// command returns a command in the container. The binary is the only program of the image.
func (c *container) command(ctx context.Context, command ...string) *exec.Cmd {
	args := slices.Clone(command[1:])
	for i := range args {
		args[i] = c.paths.Replace(args[i])
	}
	cmd := exec.CommandContext(ctx, c.bin, args...)
	cmd.Dir, cmd.SysProcAttr = "/", c.user
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin"}
	for _, e := range c.Env {
		cmd.Env = append(cmd.Env, e.Name+"="+c.paths.Replace(e.Value))
	}
	return cmd
}

// start starts the server and waits for its probes as the kubelet does. The server ends with the test.
func (c *container) start(t *testing.T) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "log")
	file, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	cmd := c.command(context.Background(), slices.Concat(c.Command, c.Args)...)
	cmd.Stdout, cmd.Stderr = file, file
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
			if err != nil {
				t.Errorf("the server ends with %v", err)
			}
		case <-time.After(15 * time.Second):
			_ = cmd.Process.Kill()
			t.Error("the server does not end within 15 s of SIGTERM, the least terminationGracePeriodSeconds")
		}
		if text, err := os.ReadFile(log); t.Failed() && err == nil {
			t.Logf("the log of the server:\n%s", text)
		}
	})
	for name, probe := range map[string]*corev1.Probe{"startup": c.StartupProbe, "liveness": c.LivenessProbe, "readiness": c.ReadinessProbe} {
		harness.Eventually(t, "the "+name+" probe succeeds", func() error {
			select {
			case <-ended:
				t.Fatalf("the server has ended: %v", err)
			default:
			}
			out, err := c.command(t.Context(), probe.Exec.Command...).CombinedOutput()
			if err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			return nil
		})
	}
}

// kubectl runs kubectl in the container, as `kubectl exec` does.
func (c *container) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := c.command(t.Context(), slices.Concat([]string{"hykube", "kubectl"}, args)...).CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// TestContainer starts the server of the default values, and with its credentials does what the notes of the chart say.
func TestContainer(t *testing.T) {
	port := freePort(t)
	c := newContainer(t, directory(t), "--set", "server.port="+port)
	c.start(t)

	t.Run("a user gets a kubeconfig", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "hykube.kubeconfig")
		cmd := c.command(t.Context(), "hykube", "kubeconfig", "--data-dir=/var/lib/hykube/data", "--user=me", "--server=https://127.0.0.1:"+port, "--output=-")
		kubeconfig, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, kubeconfig, 0o600); err != nil {
			t.Fatal(err)
		}
		c.kubectl(t, "create", "clusterrolebinding", "me", "--clusterrole=cluster-admin", "--user=me")
		if out, err := exec.CommandContext(t.Context(), c.bin, "kubectl", "--kubeconfig", path, "auth", "can-i", "create", "providers.hykube.io").CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	t.Run("the certificate has the names of the Service", func(t *testing.T) {
		names := c.kubectl(t, "config", "view", "--raw")
		for _, name := range []string{"hykube", "hykube.infra", "hykube.infra.svc", "hykube.infra.svc.cluster.local"} {
			if err := c.command(t.Context(), "hykube", "kubectl", "--server=https://127.0.0.1:"+port, "--tls-server-name="+name, "get", "--raw", "/readyz").Run(); err != nil {
				t.Errorf("%s: %v\n%s", name, err, names)
			}
		}
	})
	t.Run("the alerts use metrics that the server exports", func(t *testing.T) {
		rendered, err := render(t, helm4, "--set", "prometheusRule.enabled=true,authentication.tokenSecret.name=tokens", "--show-only", "templates/prometheusrule.yaml")
		if err != nil {
			t.Fatal(err)
		}
		names, err := monitoring.run(t, rendered)
		if err != nil {
			t.Fatal(err)
		}
		exported := c.kubectl(t, "get", "--raw", "/metrics")
		var missing []string
		for name := range strings.SplitSeq(strings.TrimSpace(names), "\n") {
			if !strings.Contains(exported, "\n"+name+"{") && !strings.Contains(exported, "\n"+name+" ") {
				missing = append(missing, name)
			}
		}
		// up is Prometheus' own. The others appear with the first error, with a token file, and with the first resource.
		want := []string{"apiserver_audit_error_total", "hykube_resources", "hykube_token_file_broken", "up"}
		if diff := cmp.Diff(want, missing); diff != "" {
			t.Errorf("metrics that the server does not export (-want +got):\n%s", diff)
		}
	})
}

// TestContainerWithSecrets starts the server with PostgreSQL, a root key, tokens and a trust policy from mounted files.
func TestContainerWithSecrets(t *testing.T) {
	dsn := database.PostgreSQL(t)
	dir := directory(t)
	mount(t, dir, "etc/hykube/database/endpoint", dsn+"\n")
	mount(t, dir, "etc/hykube/encryption/root.key", strings.Repeat("k", 42)+"8=\n")
	mount(t, dir, "etc/hykube/tokens/tokens.csv", "secret,prometheus,1,\"monitors\"\n")
	policy := "apiVersion: config.hykube.io/v1alpha1\nkind: ProviderTrustPolicy\nrules: [{name: sim, sources: [hykube/sim]}]\n"
	mount(t, dir, "etc/hykube/config/trust-policy.yaml", policy)
	port := freePort(t)
	c := newContainer(t, dir, "--set", "server.port="+port, "--set", "database.endpointSecret.name=db,encryption.keySecret.name=key,authentication.tokenSecret.name=tokens",
		"--set", "providers.trustPolicy.kind=ProviderTrustPolicy,server.extraArgs={--create-database}")
	c.start(t)
	for _, path := range []string{"encryption.key", "db/state.db"} {
		if _, err := os.Stat(filepath.Join(dir, "var/lib/hykube/data", path)); err == nil {
			t.Errorf("the server has written %s", path)
		}
	}
	// What docs/deploy.md says about the user of Prometheus.
	c.kubectl(t, "create", "clusterrolebinding", "monitors", "--clusterrole=system:monitoring", "--group=monitors")
	if metrics := c.kubectl(t, "--kubeconfig=/dev/null", "--server=https://127.0.0.1:"+port, "--insecure-skip-tls-verify", "--token=secret", "get", "--raw", "/metrics"); !strings.Contains(metrics, "\nhykube_token_file_broken") {
		t.Error("the metrics lack hykube_token_file_broken")
	}
}
