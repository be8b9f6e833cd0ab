package conformance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/hykube/hykube/tests/conformance/cloud"
)

// TestStories runs testdata/*.txtar, for the rules that only the whole server can keep. Each story has a namespace, and a cloud, of
// its own; its provider is told how to misbehave by files in the cloud.
func TestStories(t *testing.T) {
	bin := os.Getenv("HYKUBE_BIN_DIR")
	if bin == "" {
		t.Skip("the stories need the server's binary: make build, then set HYKUBE_BIN_DIR=$PWD/bin, as make test does")
	}
	w := serve(t, bin)
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			namespace := strings.TrimPrefix(filepath.Base(env.WorkDir), "script-")
			for key, value := range map[string]string{
				"PATH": filepath.Join(w, "bin") + ":" + os.Getenv("PATH"), "HOME": env.WorkDir, "NO_COLOR": "1",
				"KUBECONFIG": filepath.Join(env.WorkDir, "kubeconfig"), "CLOUD": filepath.Join(env.WorkDir, "cloud"), "NAMESPACE": namespace,
			} {
				env.Setenv(key, value)
			}
			if _, err := cloud.Open(env.Getenv("CLOUD")); err != nil {
				return err
			}
			config, err := os.ReadFile(filepath.Join(w, "data", "admin.kubeconfig"))
			if err != nil {
				return err
			}
			if err := os.WriteFile(env.Getenv("KUBECONFIG"), config, 0o600); err != nil {
				return err
			}
			configs := ""
			for _, name := range []string{"conform5", "conform6"} {
				configs += fmt.Sprintf("apiVersion: hykube.io/v1alpha1\nkind: ProviderConfig\nmetadata: {name: %s, namespace: %s}\nspec: {provider: %s, config: {directory: %q}}\n---\n",
					name, namespace, name, env.Getenv("CLOUD"))
			}
			return errors.Join(
				kubectl(w, "", "create", "namespace", namespace),
				kubectl(w, configs, "apply", "-f", "-"),
				kubectlWith(env.Getenv("KUBECONFIG"), w, "", "config", "set-context", "--current", "--namespace", namespace),
				kubectl(w, "", "wait", "--for=condition=Ready", "--timeout=60s", "providerconfigs", "--all", "-n", namespace))
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"eventually": eventually,
			"capture":    capture,
			"command":    command,
			"calls":      calls,
		},
	})
}

// serve starts a server with both providers, until the test ends. It returns the directory that it lives in.
func serve(t *testing.T, bin string) string {
	t.Helper()
	dir, err := os.MkdirTemp(plugins, "server-")
	must(t, err)
	bin, err = filepath.Abs(bin)
	must(t, err)
	for _, name := range []string{"conform5", "conform6"} {
		pkg := filepath.Join(dir, "mirror", "registry.terraform.io", "hykube", name, "1.0.0", runtime.GOOS+"_"+runtime.GOARCH)
		must(t, os.MkdirAll(pkg, 0o755))
		must(t, os.Link(filepath.Join(plugins, "terraform-provider-"+name), filepath.Join(pkg, "terraform-provider-"+name+"_v1.0.0")))
	}
	must(t, os.Mkdir(filepath.Join(dir, "bin"), 0o755))
	must(t, os.Symlink(filepath.Join(bin, "hykube"), filepath.Join(dir, "bin", "hykube")))
	must(t, os.WriteFile(filepath.Join(dir, "bin", "kubectl"), fmt.Appendf(nil, "#!/bin/sh\nexec %q kubectl \"$@\"\n", filepath.Join(bin, "hykube")), 0o755))

	log, err := os.Create(filepath.Join(dir, "server.log"))
	must(t, err)
	cmd := exec.Command(filepath.Join(bin, "hykube"), "server", "--data-dir", filepath.Join(dir, "data"), "--secure-port", "0", "--provider-mirror", filepath.Join(dir, "mirror"))
	cmd.Stdout, cmd.Stderr = log, log
	must(t, cmd.Start())
	stop := sync.OnceValue(func() error {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			return err
		}
		late := time.AfterFunc(waitLimit, func() { _ = cmd.Process.Kill() })
		defer late.Stop()
		return cmd.Wait()
	})
	t.Cleanup(func() {
		if err := errors.Join(stop(), log.Close()); err != nil {
			t.Errorf("stop server: %v", err)
		}
		if text, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("the server's log ends:\n%s", text[max(0, len(text)-8000):])
		}
	})
	await(t, "the server to be ready", func() bool { return kubectl(dir, "", "get", "--raw", "/readyz") == nil })
	providers := ""
	for _, name := range []string{"conform5", "conform6"} {
		providers += fmt.Sprintf("apiVersion: hykube.io/v1alpha1\nkind: Provider\nmetadata: {name: %s}\nspec: {source: hykube/%s}\n---\n", name, name)
	}
	must(t, kubectl(dir, providers, "apply", "-f", "-"))
	must(t, kubectl(dir, "", "wait", "--for=condition=Ready", "--timeout=60s", "providers", "--all"))
	return dir
}

func kubectl(dir, stdin string, args ...string) error {
	return kubectlWith(filepath.Join(dir, "data", "admin.kubeconfig"), dir, stdin, args...)
}

func kubectlWith(config, dir, stdin string, args ...string) error {
	cmd := exec.CommandContext(context.Background(), filepath.Join(dir, "bin", "kubectl"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+config)
	cmd.Stdin = strings.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// eventually repeats a command until it succeeds: eventually COMMAND [ARG...]
func eventually(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: eventually COMMAND [ARG...]")
	}
	deadline := time.Now().Add(waitLimit)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for err := ts.Exec(args[0], args[1:]...); err != nil; err = ts.Exec(args[0], args[1:]...) {
		if time.Now().After(deadline) {
			ts.Fatalf("%s: not within %s: %v", strings.Join(args, " "), waitLimit, err)
		}
		<-tick.C
	}
}

// capture keeps what the last command printed in a variable, of "plan.hykube.io/plan-x" only the name: capture NAME
func capture(ts *testscript.TestScript, neg bool, args []string) {
	text := strings.TrimSpace(ts.ReadFile("stdout"))
	if neg || len(args) != 1 || text == "" || strings.ContainsAny(text, " \n") {
		ts.Fatalf("capture %v: %q is not one word", args, text)
	}
	ts.Setenv(args[0], path.Base(text))
}

// command tells the provider how to treat what has a name; without a behaviour, as its configuration says: command NAME [BEHAVIOUR...]
func command(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: command NAME [BEHAVIOUR...]")
	}
	c, err := cloud.Open(ts.Getenv("CLOUD"))
	ts.Check(err)
	ts.Check(c.Command(args[0], args[1:]...))
}

// calls prints the applies so far, in order, of one name or of all: calls [NAME]
func calls(ts *testscript.TestScript, neg bool, args []string) {
	c, err := cloud.Open(ts.Getenv("CLOUD"))
	ts.Check(err)
	all, err := c.Calls()
	ts.Check(err)
	for _, call := range all {
		if call.RPC == "ApplyResourceChange" && (len(args) == 0 || call.Name == args[0]) {
			fmt.Fprintln(ts.Stdout(), call.Action, call.Name)
		}
	}
}
