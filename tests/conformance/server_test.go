package conformance

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/hykube/hykube/tests/conformance/cloud"
	"github.com/hykube/hykube/tests/harness"
)

// TestStories runs testdata/*.txtar, for the rules that only the whole server can keep. Each story has its own
// namespace and its own cloud. Files in the cloud make its provider misbehave.
func TestStories(t *testing.T) {
	s := serve(t)
	commands := harness.StoryCommands()
	maps.Copy(commands, map[string]func(ts *testscript.TestScript, neg bool, args []string){"command": command, "calls": calls})
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			namespace := strings.TrimPrefix(filepath.Base(env.WorkDir), "script-")
			env.Setenv("CLOUD", filepath.Join(env.WorkDir, "cloud"))
			if _, err := cloud.Open(env.Getenv("CLOUD")); err != nil {
				return err
			}
			configs := ""
			for _, name := range []string{"conform5", "conform6"} {
				configs += fmt.Sprintf("apiVersion: hykube.io/v1alpha1\nkind: ProviderConfig\nmetadata: {name: %s, namespace: %s}\nspec: {provider: %s, config: {directory: %q}}\n---\n",
					name, namespace, name, env.Getenv("CLOUD"))
			}
			err := s.NewStory(env, namespace)
			if err == nil {
				_, err = s.Kubectl(context.Background(), configs, "apply", "-f", "-")
			}
			if err == nil {
				_, err = s.Kubectl(context.Background(), "", "wait", "--for=condition=Ready", "--timeout=60s", "providerconfigs", "--all", "-n", namespace)
			}
			return err
		},
		Cmds: commands,
	})
}

// serve starts a server with both providers, until the test ends.
func serve(t *testing.T) *harness.Server {
	t.Helper()
	dir, err := os.MkdirTemp(plugins, "server-")
	must(t, err)
	binaries, err := harness.Built()
	must(t, err)
	binaries.Mirror = filepath.Join(dir, "mirror")
	var providers []harness.Provider
	for _, name := range []string{"conform5", "conform6"} {
		pkg := filepath.Join(binaries.Mirror, "registry.terraform.io", "hykube", name, "1.0.0", runtime.GOOS+"_"+runtime.GOARCH)
		must(t, os.MkdirAll(pkg, 0o755))
		must(t, os.Link(filepath.Join(plugins, "terraform-provider-"+name), filepath.Join(pkg, "terraform-provider-"+name+"_v1.0.0")))
		providers = append(providers, harness.Provider{Name: name, Source: "hykube/" + name, Open: true})
	}
	s := &harness.Server{Binaries: binaries, Dir: dir}
	s.Serve(t)
	must(t, s.Install(t.Context(), providers...))
	return s
}

// command sets how the provider treats a name. Without a behaviour, the provider uses its configuration: command NAME
// [BEHAVIOUR...]
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
