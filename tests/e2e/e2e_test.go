package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/hykube/hykube/tests/harness"
	"github.com/hykube/hykube/tests/simcloud"
)

// shared is the server of the stories, and cloud is the cloud of its provider. TestMain sets both before any test.
var (
	shared *harness.Server
	cloud  *harness.Cloud
)

func TestMain(m *testing.M) {
	code := 1
	err := start()
	if err == nil {
		code = m.Run()
	}
	if err := errors.Join(err, stop()); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		code = 1
	}
	os.Exit(code)
}

func start() error {
	dir, err := os.MkdirTemp("", "hykube-e2e-")
	if err != nil {
		return err
	}
	shared = &harness.Server{Dir: dir}
	// Some stories have clouds of their own. Their IDs must not be those of this one.
	if cloud, err = harness.StartCloud(simcloud.Config{LastID: 1 << 20}); err != nil {
		return err
	}
	// Stories log in as these users. The token is the user's name.
	if err := os.WriteFile(tokens(), []byte("alice-token,alice,alice,developers\nbob-token,bob,bob,approvers\n"), 0o600); err != nil {
		return err
	}
	shared.Args, shared.Env = []string{"--token-auth-file", tokens(), "--notification-allow-cidr", "127.0.0.0/8"}, []string{"SIMCLOUD_ADDRESS=" + cloud.Address}
	if err := shared.Start(context.Background()); err != nil {
		return err
	}
	return shared.Install(context.Background(), harness.Provider{Name: "sim", Source: "hykube/sim", Environment: []string{"SIMCLOUD_ADDRESS"}},
		harness.Provider{Name: "time", Source: "hashicorp/time", Version: "~> 0.14"})
}

func tokens() string { return filepath.Join(shared.Dir, "tokens.csv") }

func stop() error {
	var err error
	if shared != nil {
		err = shared.Remove()
	}
	if cloud != nil {
		err = errors.Join(err, cloud.Stop())
	}
	return err
}

func TestStories(t *testing.T) {
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	commands := harness.StoryCommands()
	commands["kstatus"] = kstatus
	release := sync.OnceValues(func() (string, error) { return buildRelease(t) })
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			for key, value := range map[string]string{
				"SIMCLOUD_ADDRESS": cloud.Address, "MIRROR": shared.Mirror, "EXAMPLES": examples, "TOKENS": tokens(), "DATA": shared.Data(),
			} {
				env.Setenv(key, value)
			}
			// Providers run as other users. They may pass through this directory to the paths that a story grants them.
			if err := os.Chmod(filepath.Dir(env.WorkDir), 0o711); err != nil {
				return err
			}
			namespace := "story-" + strings.TrimPrefix(filepath.Base(env.WorkDir), "script-")
			if err := shared.NewStory(env, namespace); err != nil {
				return err
			}
			if strings.HasPrefix(filepath.Base(env.WorkDir), "script-stack-workflow") {
				program, err := release()
				if err != nil {
					return err
				}
				env.Setenv("RELEASE", program)
			}
			return configure(env, namespace)
		},
		Cmds: commands,
	})
}

// buildRelease builds the worker of examples/workflows/release.
func buildRelease(t *testing.T) (string, error) {
	program := filepath.Join(t.TempDir(), "release")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../../examples/workflows/release").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the example: %w\n%s", err, out)
	}
	return program, nil
}

// simConfig is a ProviderConfig for the provider "sim" without arguments.
const simConfig = `{"apiVersion":"hykube.io/v1alpha1","kind":"ProviderConfig","metadata":{"name":"sim"},"spec":{"provider":"sim"}}`

// ownConfig matches a file of a story with a ProviderConfig named "sim".
var ownConfig = regexp.MustCompile(`kind: ProviderConfig\nmetadata:\s*\{?\s*name: sim\b`)

// configure creates the ProviderConfig "sim" in the namespace of a story, unless the files of the story have it.
func configure(env *testscript.Env, namespace string) error {
	files, err := filepath.Glob(filepath.Join(env.WorkDir, "*.yaml"))
	if err != nil {
		return err
	}
	below, err := filepath.Glob(filepath.Join(env.WorkDir, "*", "*.yaml"))
	if err != nil {
		return err
	}
	for _, file := range append(files, below...) {
		text, err := os.ReadFile(file)
		if err != nil || ownConfig.Match(text) {
			return err
		}
	}
	_, err = shared.Kubectl(context.Background(), simConfig, "create", "-n", namespace, "-f", "-")
	return err
}

// kubectl runs kubectl as the administrator, and returns its output.
func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	return kubectlWith(t, "", args...)
}

// digestOf returns the digest of a plan, with which a user approves it.
func digestOf(t *testing.T, name, namespace string) string {
	t.Helper()
	return strings.TrimSpace(kubectl(t, "get", "plan", name, "-n", namespace, "-o", "jsonpath={.status.digest}"))
}

func kubectlWith(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	out, err := shared.Kubectl(t.Context(), stdin, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// newNamespace creates a namespace with a ProviderConfig for the provider "sim".
func newNamespace(t *testing.T, name string) {
	t.Helper()
	kubectl(t, "create", "namespace", name)
	kubectlWith(t, simConfig, "create", "-n", name, "-f", "-")
}
