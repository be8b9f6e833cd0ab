package harness

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/client-go/tools/clientcmd"
)

// NewStory prepares a story: its own namespace, a kubeconfig for it, and the kubectl inside hykube, whatever the
// machine has.
func (s *Server) NewStory(env *testscript.Env, namespace string) error {
	tools := filepath.Join(env.WorkDir, ".bin")
	if err := os.Mkdir(tools, 0o755); err != nil {
		return err
	}
	if err := os.Symlink(s.Path("hykube-kubectl"), filepath.Join(tools, "kubectl")); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(tools, "approve"), []byte(approveScript), 0o755); err != nil { //nolint:gosec // a program
		return err
	}
	kubeconfig := filepath.Join(env.WorkDir, "kubeconfig")
	for key, value := range map[string]string{
		"PATH": strings.Join([]string{tools, s.Bin, os.Getenv("PATH")}, ":"), "HOME": env.WorkDir, "NO_COLOR": "1",
		"KUBECONFIG": kubeconfig, "NAMESPACE": namespace,
	} {
		env.Setenv(key, value)
	}
	config, err := clientcmd.LoadFromFile(s.Kubeconfig())
	if err != nil {
		return err
	}
	config.Contexts[config.CurrentContext].Namespace = namespace
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		return err
	}
	_, err = s.Kubectl(context.Background(), "", "create", "namespace", namespace)
	return err
}

// StoryCommands are the commands of every story.
func StoryCommands() map[string]func(ts *testscript.TestScript, neg bool, args []string) {
	return map[string]func(ts *testscript.TestScript, neg bool, args []string){
		"capture": capture, "env-in": envIn, "eventually": eventually, "exits": exits,
	}
}

// approveScript is the command "approve PLAN [FLAG...]" of stories. It approves the plan that has the name now, as a user in a terminal
// does; elsewhere, kubectl hykube approve needs the digest.
const approveScript = `#!/bin/sh
plan= where= before=
for arg; do
	case $before in
	-n | --namespace | --context) where="$where $before $arg" before= && continue ;;
	-m | --message) before= && continue ;;
	esac
	case $arg in
	-n | --namespace | --context | -m | --message) before=$arg ;;
	--namespace=* | --context=*) where="$where $arg" ;;
	-*) ;;
	*) plan=${plan:-$arg} ;;
	esac
done
digest=$(kubectl get plan "$plan" $where -o 'jsonpath={.status.digest}' 2>/dev/null)
exec kubectl hykube approve --digest "${digest:-none}" "$@"
`

// eventually repeats a command until it succeeds (or, negated, fails), at most for a minute: eventually COMMAND
// [ARG...]
func eventually(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) == 0 {
		ts.Fatalf("usage: eventually COMMAND [ARG...]")
	}
	err := Within(waitLimit, func() error {
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

// envIn replaces ${NAME} by the value of the variable in files: env-in NAMESPACE FILE...
func envIn(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: env-in NAME FILE...")
	}
	for _, file := range args[1:] {
		text := strings.ReplaceAll(ts.ReadFile(file), "$"+args[0], ts.Getenv(args[0]))
		ts.Check(os.WriteFile(ts.MkAbs(file), []byte(text), 0o600))
	}
}

// exits runs a command that must end with the given exit code: exits CODE CMD [ARG...]
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND [ARG...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		ee, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%s: %v", strings.Join(args[1:], " "), err)
		}
		got = ee.ExitCode()
	}
	if got != want {
		ts.Fatalf("%s: exit code %d, want %d", strings.Join(args[1:], " "), got, want)
	}
}

// capture stores the output of the last command in a variable; of "plan.hykube.io/plan-x" only the name: capture NAME
func capture(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: capture NAME")
	}
	text := strings.TrimSpace(ts.ReadFile("stdout"))
	if text == "" || strings.ContainsAny(text, " \n") {
		ts.Fatalf("capture %s: %q is not one word", args[0], text)
	}
	ts.Setenv(args[0], path.Base(text))
}
