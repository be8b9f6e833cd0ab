package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
	"sigs.k8s.io/yaml"

	"github.com/hykube/hykube/tests/harness"
	"github.com/hykube/hykube/tests/harness/machine"
)

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// option matches the flags of the server in a file.
var option = regexp.MustCompile(`(?:^|[\s"'\x60(-])(--[a-z][a-z0-9-]+)`)

// notOurs are the flags of other programs in these files.
var notOurs = []string{"--platform", "--mount", "--from", "--chown", "--build-arg", "--yes", "--no-install-recommends", "--print-architecture", "--now", "--help",
	"--username", "--detach"}

// TestFlagsExist expects each flag in the files for systemd, containers and compose to be one of the server.
func TestFlagsExist(t *testing.T) {
	binaries, err := harness.Built()
	if err != nil {
		t.Fatal(err)
	}
	help := ""
	for _, command := range []string{"server", "worker", "probe"} {
		out, err := exec.CommandContext(t.Context(), binaries.Path("hykube"), command, "--help").Output()
		if err != nil {
			t.Fatal(err)
		}
		help += string(out)
	}
	for _, file := range []string{"systemd/hykube.service", "systemd/hykube.env", "Containerfile", "compose/compose.yaml", "compose/compose.temporal.yaml"} {
		found := 0
		for _, m := range option.FindAllStringSubmatch(read(t, "deploy/"+file), -1) {
			if slices.Contains(notOurs, m[1]) {
				continue
			}
			if found++; !strings.Contains(help, " "+m[1]+" ") && !strings.Contains(help, " "+m[1]+"\n") {
				t.Errorf("deploy/%s has the flag %s, which the server does not have", file, m[1])
			}
		}
		if found == 0 && file != "systemd/hykube.service" {
			t.Errorf("found no flag in deploy/%s: the test looks for the wrong thing", file)
		}
	}
}

// TestContainerfile expects the Go image of the version that go.mod names.
func TestContainerfile(t *testing.T) {
	mod, err := modfile.Parse("go.mod", []byte(read(t, "go.mod")), nil)
	if err != nil {
		t.Fatal(err)
	}
	text := read(t, "deploy/Containerfile")
	if want := "golang:" + mod.Go.Version + "-bookworm"; !strings.Contains(text, want) {
		t.Errorf("the Containerfile does not build with %s", want)
	}
	if !strings.Contains(text, "\nUSER 65532:65532\n") {
		t.Error("the image runs as root")
	}
}

// TestCompose expects the services to be restricted, and secrets to be in files.
func TestCompose(t *testing.T) {
	var project struct {
		Services map[string]struct {
			User        string
			ReadOnly    bool     `json:"read_only"`
			CapDrop     []string `json:"cap_drop"`
			Command     []string
			Secrets     []string
			DependsOn   map[string]any `json:"depends_on"`
			Healthcheck struct{ Test []string }
		}
		Secrets map[string]struct{ File string }
	}
	if err := yaml.Unmarshal([]byte(read(t, "deploy/compose/compose.yaml")), &project); err != nil {
		t.Fatal(err)
	}
	server := project.Services["hykube"]
	if server.User != "65532:65532" || !server.ReadOnly || !slices.Equal(server.CapDrop, []string{"ALL"}) {
		t.Errorf("the server is not restricted: user %q, read_only %t, cap_drop %v", server.User, server.ReadOnly, server.CapDrop)
	}
	for _, name := range server.Secrets {
		if project.Secrets[name].File == "" || !slices.ContainsFunc(server.Command, func(a string) bool { return strings.HasSuffix(a, "=/run/secrets/"+name) }) {
			t.Errorf("the secret %s has no file, or the server does not use it", name)
		}
	}
	for name := range server.DependsOn {
		if _, ok := project.Services[name]; !ok {
			t.Errorf("the server depends on %s, which is no service", name)
		}
	}
	if !slices.Contains(server.Healthcheck.Test, "probe") {
		t.Error("the server has no health check")
	}
}

// TestUnit asks systemd whether it understands the unit, and how much the unit protects.
func TestUnit(t *testing.T) {
	analyze := machine.SystemdAnalyze.Need(t)
	text := read(t, "deploy/systemd/hykube.service")
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// verify looks for the program.
	unit := filepath.Join(t.TempDir(), "hykube.service")
	if err := os.WriteFile(unit, []byte(strings.ReplaceAll(text, "/usr/local/bin/hykube", program)), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", unit).CombinedOutput()
	if err != nil || strings.Contains(string(out), unit+":") {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	// The exposure is at most 4.0 of 10. A service without any restriction has 9.6.
	if out, err := exec.CommandContext(t.Context(), analyze, "security", "--offline=true", "--threshold=40", unit).CombinedOutput(); err != nil {
		t.Errorf("systemd-analyze security: %v\n%s", err, out)
	}
	for _, line := range []string{"Delegate=yes", "NoNewPrivileges=yes", "ProtectSystem=strict"} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("the unit lacks %s", line)
		}
	}
	// Both would take away a part of the providers' sandbox: their own users, and their own cgroups.
	for _, setting := range []string{"RestrictNamespaces", "ProtectControlGroups", "User", "PrivateUsers"} {
		if strings.Contains(text, "\n"+setting+"=") {
			t.Errorf("the unit has %s=, which breaks the sandbox of providers", setting)
		}
	}
}
