package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

const (
	// startLimit bounds how long the server may take to be ready on a busy machine.
	startLimit = 60 * time.Second
	// stopLimit bounds how long it may take to stop; the promise is ten seconds.
	stopLimit = 15 * time.Second
	// eventuallyLimit bounds what a story waits for.
	eventuallyLimit = 60 * time.Second
)

// harness is the server that the stories share, and the cloud behind it.
type harness struct {
	bin, mirror, dir string
	cloud, server    *exec.Cmd
	cloudAddress     string
}

func TestMain(m *testing.M) {
	h := &harness{}
	code := 1
	if err := h.start(); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
	} else {
		shared = h
		code = m.Run()
	}
	if err := h.stop(); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		code = 1
	}
	os.Exit(code)
}

// shared is set by TestMain, before any test.
var shared *harness

func (h *harness) start() (err error) {
	root, err := filepath.Abs("../..")
	if err != nil {
		return err
	}
	h.bin, h.mirror = os.Getenv("HYKUBE_BIN_DIR"), os.Getenv("HYKUBE_MIRROR_DIR")
	if h.bin == "" || h.mirror == "" {
		if out, err := exec.Command("make", "-s", "-C", root, "build", "mirror").CombinedOutput(); err != nil {
			return fmt.Errorf("make build mirror: %w\n%s", err, out)
		}
		h.bin, h.mirror = filepath.Join(root, "bin"), filepath.Join(root, ".cache", "mirror")
	}
	if h.dir, err = os.MkdirTemp("", "hykube-e2e-"); err != nil {
		return err
	}
	// kubectl in the stories is the one inside hykube, whatever the machine has.
	tools := filepath.Join(h.dir, "bin")
	if err := os.Mkdir(tools, 0o755); err != nil {
		return err
	}
	script := fmt.Sprintf("#!/bin/sh\nexec %q kubectl \"$@\"\n", filepath.Join(h.bin, "hykube"))
	if err := os.WriteFile(filepath.Join(tools, "kubectl"), []byte(script), 0o755); err != nil {
		return err
	}
	if err := h.startCloud(); err != nil {
		return err
	}
	return h.startServer()
}

func (h *harness) startCloud() error {
	address := filepath.Join(h.dir, "cloud.address")
	h.cloud = exec.Command(filepath.Join(h.bin, "simcloud"), "serve", "--listen", "127.0.0.1:0", "--address-file", address)
	if err := h.background(h.cloud, "cloud.log"); err != nil {
		return err
	}
	return poll(startLimit, func() error {
		data, err := os.ReadFile(address)
		if err != nil {
			return err
		}
		if h.cloudAddress = strings.TrimSpace(string(data)); h.cloudAddress == "" {
			return errors.New("the cloud has not written its address yet")
		}
		return nil
	})
}

func (h *harness) startServer() error {
	h.server = exec.Command(filepath.Join(h.bin, "hykube"), "server",
		"--data-dir", filepath.Join(h.dir, "data"), "--secure-port", "0", "--provider-mirror", h.mirror,
		"--token-auth-file", h.tokens())
	h.server.Env = append(os.Environ(), "SIMCLOUD_ADDRESS="+h.cloudAddress)
	if err := h.background(h.server, "server.log"); err != nil {
		return err
	}
	err := poll(startLimit, func() error { return h.kubectl("", "get", "--raw", "/readyz") })
	if err == nil {
		err = h.kubectl(providers, "apply", "-f", "-")
	}
	if err == nil {
		err = h.kubectl("", "wait", "--for=condition=Ready", "--timeout=60s", "providers", "--all")
	}
	if err != nil {
		log, _ := os.ReadFile(filepath.Join(h.dir, "server.log"))
		return fmt.Errorf("start server: %w\n%s", err, tail(string(log), 40))
	}
	return nil
}

// providers are what the stories use, installed once.
const providers = `
apiVersion: hykube.io/v1alpha1
kind: Provider
metadata: {name: sim}
spec: {source: hykube/sim}
---
apiVersion: hykube.io/v1alpha1
kind: Provider
metadata: {name: time}
spec: {source: hashicorp/time, version: "~> 0.14"}
`

// tokens writes the users that stories log in as, with the user's name for a token.
func (h *harness) tokens() string {
	path := filepath.Join(h.dir, "tokens.csv")
	text := "alice-token,alice,alice,developers\nbob-token,bob,bob,approvers\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		panic(err) // the directory was just made
	}
	return path
}

func (h *harness) background(cmd *exec.Cmd, log string) error {
	f, err := os.Create(filepath.Join(h.dir, log))
	if err != nil {
		return err
	}
	defer f.Close()
	cmd.Stdout, cmd.Stderr = f, f
	return cmd.Start()
}

func (h *harness) kubectl(stdin string, args ...string) error {
	cmd := exec.Command(filepath.Join(h.bin, "hykube"), append([]string{"kubectl"}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+h.kubeconfig())
	cmd.Stdin = strings.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

func (h *harness) kubeconfig() string { return filepath.Join(h.dir, "data", "admin.kubeconfig") }

// stop ends what was started, and complains about a server that does not stop in time or leaves a provider behind.
func (h *harness) stop() error {
	var errs []error
	for _, cmd := range []*exec.Cmd{h.server, h.cloud} {
		if cmd == nil || cmd.Process == nil {
			continue
		}
		if err := terminate(cmd); err != nil {
			errs = append(errs, err)
		}
	}
	if out, err := exec.Command("pgrep", "-f", filepath.Join(h.dir, "data", "providers")).Output(); err == nil {
		errs = append(errs, fmt.Errorf("provider processes are left: %s", out))
	}
	if os.Getenv("HYKUBE_E2E_KEEP") == "" && h.dir != "" {
		errs = append(errs, os.RemoveAll(h.dir))
	}
	return errors.Join(errs...)
}

func terminate(cmd *exec.Cmd) error {
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop %s: %w", filepath.Base(cmd.Path), err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	late := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	err := cmd.Wait()
	if !late() {
		return fmt.Errorf("stop %s: it took longer than %s", filepath.Base(cmd.Path), stopLimit)
	}
	if err != nil {
		return fmt.Errorf("stop %s: %w", filepath.Base(cmd.Path), err)
	}
	return nil
}

func TestStories(t *testing.T) {
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			name := strings.TrimPrefix(filepath.Base(env.WorkDir), "script-")
			namespace := "story-" + name
			for key, value := range map[string]string{
				"PATH":             filepath.Join(shared.dir, "bin") + ":" + shared.bin + ":" + os.Getenv("PATH"),
				"HOME":             env.WorkDir,
				"KUBECONFIG":       filepath.Join(env.WorkDir, "kubeconfig"),
				"NAMESPACE":        namespace,
				"SIMCLOUD_ADDRESS": shared.cloudAddress,
				"MIRROR":           shared.mirror,
				"EXAMPLES":         examples,
				"TOKENS":           filepath.Join(shared.dir, "tokens.csv"),
				"DATA":             filepath.Join(shared.dir, "data"),
				"NO_COLOR":         "1",
			} {
				env.Setenv(key, value)
			}
			config, err := os.ReadFile(shared.kubeconfig())
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(env.WorkDir, "kubeconfig"), config, 0o600); err != nil {
				return err
			}
			if err := shared.kubectl("", "create", "namespace", namespace); err != nil {
				return err
			}
			cmd := exec.Command(filepath.Join(shared.bin, "hykube"), "kubectl", "config", "set-context", "--current", "--namespace", namespace)
			cmd.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(env.WorkDir, "kubeconfig"))
			if out, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("set namespace: %w\n%s", err, out)
			}
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"eventually": eventually,
			"env-in":     envIn,
			"exits":      exits,
			"capture":    capture,
			"kstatus":    kstatus,
		},
	})
}

// eventually repeats a command until it succeeds (or, negated, fails), or the limit is over.
func eventually(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) == 0 {
		ts.Fatalf("usage: eventually COMMAND [ARG...]")
	}
	err := poll(eventuallyLimit, func() error {
		err := ts.Exec(args[0], args[1:]...)
		switch {
		case neg && err == nil:
			return errors.New("it still succeeds")
		case neg:
			return nil
		}
		return err
	})
	if err != nil {
		ts.Fatalf("%s: %v", strings.Join(args, " "), err)
	}
}

// envIn replaces ${NAME} for the named variables in files: env-in NAMESPACE FILE...
func envIn(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: env-in NAME FILE...")
	}
	for _, file := range args[1:] {
		path := ts.MkAbs(file)
		text := strings.ReplaceAll(ts.ReadFile(file), "$"+args[0], ts.Getenv(args[0]))
		ts.Check(os.WriteFile(path, []byte(text), 0o600))
	}
}

func poll(limit time.Duration, try func() error) error {
	deadline := time.Now().Add(limit)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not within %s: %w", limit, err)
		}
		<-tick.C
	}
}

func tail(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
