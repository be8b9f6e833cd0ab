package contain

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The environment of a provider has what it needs to run and to reach the network, and what its Provider names.
func TestEnvironment(t *testing.T) {
	ours := []string{
		"PATH=/bin", "LC_ALL=C", "TZ=UTC", "HTTPS_PROXY=http://proxy", "AWS_SECRET_ACCESS_KEY=x", "AWS_PROFILE=a", "HOME=/root",
		"HYKUBE_SECRET=x", "TF_TOKEN_example_com=x", "PLUGIN_CLIENT_CERT=x",
	}
	want := []string{"PATH=/bin", "LC_ALL=C", "TZ=UTC", "HTTPS_PROXY=http://proxy", "AWS_PROFILE=a"}
	if got := environment(ours, []string{"AWS_PROFILE", "HYKUBE_SECRET", "PLUGIN_CLIENT_CERT"}); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestEachProviderHasItsOwnUser(t *testing.T) {
	whole, small, one := "0 0 4294967295\n", "0 100000 65536\n", "0 1000 1\n"
	u := newUsers(strings.NewReader(whole), strings.NewReader(whole))
	a, b := u.idOf("example.com/a/a"), u.idOf("example.com/a/b")
	if a == b || a != u.idOf("example.com/a/a") || a < firstUser || a >= firstUser+countUsers {
		t.Errorf("users %d and %d", a, b)
	}
	if again := newUsers(strings.NewReader(whole), strings.NewReader(whole)).idOf("example.com/a/a"); again != a {
		t.Errorf("after a restart the user is %d, and was %d", again, a)
	}
	u = newUsers(strings.NewReader(small), strings.NewReader(small))
	seen := map[int]bool{}
	for i := range 200 { // two of them begin at the same number
		seen[u.idOf(strings.Repeat("x", i))] = true
	}
	for id := range seen {
		if id < smallestUser || id >= 65536 {
			t.Errorf("user %d is not in the namespace", id)
		}
	}
	if len(seen) != 200 {
		t.Errorf("200 providers have %d users", len(seen))
	}
	if newUsers(strings.NewReader(one), strings.NewReader(one)) != nil {
		t.Error("a namespace of one user has others")
	}
}

// TestGrantsExcludeFilesOfTheServer grants the server's directory, its parent, /proc, and symbolic links to them.
func TestGrantsExcludeFilesOfTheServer(t *testing.T) {
	dir := t.TempDir()
	data, link, processes := filepath.Join(dir, "data"), filepath.Join(dir, "link"), filepath.Join(dir, "processes")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(data, link); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/proc", processes); err != nil {
		t.Fatal(err)
	}
	p := New(Config{Protected: []string{data}})
	for path, refused := range map[string]bool{
		data: true, filepath.Join(data, "tls"): true, dir: true, "/": true, link: true, "/proc/1": true, processes: true, filepath.Join(dir, "data-2"): false, "/srv": false,
	} {
		if err := p.Check(Grants{WritePaths: []string{path}}); (err != nil) != refused {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestModes(t *testing.T) {
	full, none := Support{System: true, Landlock: 7, Seccomp: true}, Support{System: true}
	limited, alone := full, full
	limited.Cgroup, limited.Controllers, limited.NoControllers = true, []string{"cpu", "pids"}, []string{"memory"}
	alone.NoCgroup = "a cgroup v2 that is delegated to the server"
	for reason, tc := range map[string]struct {
		mode               Mode
		support            Support
		grants             Grants
		refused, contained bool
		message            string
	}{
		"all that there is":                {mode: Auto, support: full, contained: true, message: "Landlock 7"},
		"an old kernel":                    {mode: Auto, support: none, message: "Missing on this machine: Landlock"},
		"an old kernel, required":          {mode: Require, support: none, refused: true, message: "seccomp"},
		"another system, required":         {mode: Require, refused: true, message: "Linux"},
		"off by the Provider":              {mode: Auto, support: full, grants: Grants{Off: true}, message: "spec.sandbox.mode is Off"},
		"off by the Provider and required": {mode: Require, support: full, grants: Grants{Off: true}, refused: true, message: "Off"},
		"off by the server":                {mode: Off, support: full, message: "--provider-sandbox=off"},
		"a cgroup": {mode: Auto, support: limited, contained: true,
			message: "seccomp, a cgroup with limits (cpu, pids). Missing on this machine: a separate user for each provider (a server that runs as root); the cgroup controller memory;"},
		"no delegated cgroup, required": {mode: Require, support: alone, contained: true, message: "a cgroup for each process (a cgroup v2 that is delegated to the server)"},
		"ports on an old kernel":        {mode: Auto, support: Support{System: true, Landlock: 3, Seccomp: true}, grants: Grants{ConnectPorts: []uint16{1}}, contained: true, message: "TCP ports (Landlock 4; this kernel has 3)"},
	} {
		t.Run(reason, func(t *testing.T) {
			p := &Policy{config: Config{Mode: tc.mode}, support: tc.support}
			if err := p.Check(tc.grants); (err != nil) != tc.refused {
				t.Errorf("refused: %v", err)
			}
			if r := p.Report("a", tc.grants); r.Contained != tc.contained || !strings.Contains(r.Message, tc.message) {
				t.Errorf("report %+v", r)
			}
		})
	}
}
