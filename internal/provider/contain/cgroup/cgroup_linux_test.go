package cgroup

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hykube/hykube/internal/provider/contain/cgroup/cgrouptest"
	"github.com/hykube/hykube/tests/harness/machine"
)

// serverVariable makes the test binary a server that opens the cgroup at a place; see serve.
const serverVariable = "CGROUP_TEST_SERVER"

func TestMain(m *testing.M) {
	if place := os.Getenv(serverVariable); place != "" {
		serve(place)
		return
	}
	if size := os.Getenv("CGROUP_TEST_MEMORY"); size != "" {
		n, _ := strconv.Atoi(size)
		block := make([]byte, n)
		for i := range block {
			block[i] = 1
		}
		return
	}
	os.Exit(m.Run())
}

// opened describes the tree that a server opened.
type opened struct {
	Err                  string
	NotDelegated         bool
	Root, Dir, Own       string
	Controllers, Missing []string
}

// serve opens a tree, describes it on stdout, and closes it at the end of stdin.
func serve(place string) {
	t, err := Open(place, Limits{})
	var o opened
	if err != nil {
		o.Err, o.NotDelegated = err.Error(), errors.Is(err, ErrNotDelegated)
	} else {
		o.Root, o.Dir, o.Controllers, o.Missing = t.Root, t.dir, t.Controllers, t.Missing
		defer t.Close()
	}
	o.Own, _ = ownCgroup()
	_ = json.NewEncoder(os.Stdout).Encode(o)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// server is a process that runs serve.
type server struct {
	opened
	cmd   *exec.Cmd
	stdin io.Closer
}

// startServer starts a server in a cgroup.
func startServer(t *testing.T, dir, place string) *server {
	t.Helper()
	return startServerWith(t, dir, place, os.Args[0])
}

// startServerWith starts a server with a command.
func startServerWith(t *testing.T, dir, place, name string, args ...string) *server {
	t.Helper()
	s := &server{cmd: command(t, dir, name, args...)}
	s.cmd.Env = append(os.Environ(), serverVariable+"="+place)
	stdin, err := s.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.stdin = stdin
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.cmd.Process.Kill(); s.cmd.Wait() })
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(line, &s.opened); err != nil {
		t.Fatal(err)
	}
	return s
}

// stop makes the server close its tree and end.
func (s *server) stop(t *testing.T) {
	t.Helper()
	s.stdin.Close()
	if err := s.cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// command returns a command that starts directly in a cgroup.
func command(t *testing.T, dir string, name string, args ...string) *exec.Cmd {
	t.Helper()
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(f.Fd())}
	cmd.Stderr = os.Stderr
	return cmd
}

// delegate marks a cgroup as systemd does.
func delegate(t *testing.T, dir string) {
	t.Helper()
	if err := unix.Setxattr(dir, "trusted.delegate", []byte("1"), 0); err != nil {
		t.Skip("this process may not mark a cgroup as delegated: " + err.Error())
	}
}

// openTree opens a tree below a new cgroup.
func openTree(t *testing.T, limits Limits) *Tree {
	t.Helper()
	tree, err := Open(cgrouptest.NewRoot(t), limits)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tree.Close)
	return tree
}

func newGroup(t *testing.T, tree *Tree, name string) *Group {
	t.Helper()
	g, err := tree.New(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Remove(); err != nil {
			t.Error(err)
		}
	})
	return g
}

// names returns the names of the cgroups below a directory.
func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, e := range entries {
		if e.IsDir() {
			found = append(found, e.Name())
		}
	}
	return found
}

func content(t *testing.T, path ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(data))
}

func waitFor(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited too long for %s", what)
		}
	}
}

// TestServerMovesItself starts servers in a delegated cgroup, as systemd does. Each moves itself to a child, and
// removes its tree at its end.
func TestServerMovesItself(t *testing.T) {
	root := cgrouptest.NewRoot(t)
	delegate(t, root)
	other := command(t, root, "sleep", "60") // such as a shell that starts the server
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { other.Process.Kill(); other.Wait() })
	child := filepath.Join(root, serverName)
	for start, dir := range map[string]string{"in the cgroup": root, "in the child": child} {
		if start == "in the child" {
			if err := os.Mkdir(child, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
				t.Fatal(err)
			}
		}
		s := startServer(t, dir, Auto)
		if s.Err != "" {
			t.Fatalf("%s: %s", start, s.Err)
		}
		if filepath.Base(s.Own) != serverName || filepath.Base(s.Root) != filepath.Base(root) {
			t.Errorf("%s: the server is in %s, and its root is %s", start, s.Own, s.Root)
		}
		if got, _ := processesIn(root); len(got) != 0 {
			t.Errorf("%s: the delegated cgroup has processes %v", start, got)
		}
		if got := len(s.Controllers) + len(s.Missing); got != len(controllers) {
			t.Errorf("%s: controllers %v, missing %v", start, s.Controllers, s.Missing)
		}
		if slices.Contains(s.Controllers, "cpu") {
			if providers, own := content(t, s.Dir, "cpu.weight"), content(t, child, "cpu.weight"); providers != "50" || own != "100" {
				t.Errorf("the providers have weight %s, and the server has %s", providers, own)
			}
		}
		s.stop(t)
		if got := names(t, root); !slices.Equal(got, []string{serverName}) {
			t.Errorf("%s: %v is left", start, got)
		}
	}
}

// TestServerLeavesOtherCgroupsAlone starts a server in cgroups that are not delegated to it. Nothing may change.
func TestServerLeavesOtherCgroupsAlone(t *testing.T) {
	root := cgrouptest.NewRoot(t)
	below := filepath.Join(root, "below")
	if err := os.Mkdir(below, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{root, below} {
		s := startServer(t, dir, Auto)
		if !s.NotDelegated {
			t.Errorf("in %s: %+v", dir, s.opened)
		}
		if got, _ := processesIn(dir); !slices.Equal(got, []int{s.cmd.Process.Pid}) {
			t.Errorf("%s has the processes %v, and not the server", dir, got)
		}
		s.stop(t)
		delegate(t, root) // to the parent of the second cgroup, such as another manager
	}
	if got := names(t, root); !slices.Equal(got, []string{"below"}) {
		t.Errorf("%v is left", got)
	}
}

// TestServerLeavesAReadOnlyCgroupAlone starts a server as in a container, whose delegated cgroup is read-only.
func TestServerLeavesAReadOnlyCgroupAlone(t *testing.T) {
	root := cgrouptest.NewRoot(t)
	delegate(t, root)
	unshare := machine.Unshare.Need(t)
	const readOnly = `for m in $(awk '$3 == "cgroup2" {print $2}' /proc/mounts); do mount -o remount,bind,ro "$m" || exit 1; done; exec "$0"`
	s := startServerWith(t, root, Auto, unshare, "--mount", "sh", "-c", readOnly, os.Args[0])
	if !s.NotDelegated || filepath.Base(s.Own) != filepath.Base(root) {
		t.Errorf("%+v", s.opened)
	}
	s.stop(t)
}

func TestNamedCgroup(t *testing.T) {
	root := cgrouptest.NewRoot(t)
	s := startServer(t, root, root)
	if filepath.Base(s.Own) != serverName || s.Root != root {
		t.Errorf("a server in the named cgroup: %+v", s.opened)
	}
	if own := os.Getpid(); slices.Contains(mustProcesses(t, filepath.Join(root, serverName)), own) {
		t.Error("this process was moved")
	}
	for dir, want := range map[string]string{
		filepath.Join(root, serverName): "name an empty cgroup",
		t.TempDir():                     "not a directory of cgroup v2",
		filepath.Join(root, "missing"):  "no such file",
	} {
		if _, err := find(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", dir, err)
		}
	}
	top := filepath.Dir(root)
	if _, err := os.Stat(filepath.Join(top, "cgroup.type")); err == nil {
		return // this machine is a container
	}
	if _, err := find(top); err == nil || !strings.Contains(err.Error(), "name a directory below it") {
		t.Errorf("the root of all cgroups: %v", err)
	}
}

func mustProcesses(t *testing.T, dir string) []int {
	t.Helper()
	ids, err := processesIn(dir)
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// TestServerEndsTheProcessesOfAKilledOne kills a server, whose processes go on. The next one ends them, but not those
// of a server that runs.
func TestServerEndsTheProcessesOfAKilledOne(t *testing.T) {
	root := cgrouptest.NewRoot(t)
	delegate(t, root)
	killed := startServer(t, root, Auto)
	living := startServer(t, filepath.Join(root, serverName), Auto)
	group := filepath.Join(killed.Dir, "p1")
	if err := os.Mkdir(group, 0o755); err != nil {
		t.Fatal(err)
	}
	left := command(t, group, "sleep", "15")
	if err := left.Start(); err != nil {
		t.Fatal(err)
	}
	killed.cmd.Process.Kill()
	killed.cmd.Wait()
	next := startServer(t, filepath.Join(root, serverName), Auto)
	if err := left.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("the process of a killed server: %v", err)
	}
	got := names(t, root)
	want := []string{filepath.Base(living.Dir), filepath.Base(next.Dir), serverName}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the cgroups are %v, want %v", got, want)
	}
}

// TestGroupEndsDescendants starts a process whose child leaves its session. The child starts in the group, and ends
// with it.
func TestGroupEndsDescendants(t *testing.T) {
	tree := openTree(t, Limits{})
	for name, end := range map[string]func(*Group){"cgroup.kill": (*Group).Kill, "before Linux 5.14": func(g *Group) { killEach(g.dir) }} {
		t.Run(name, func(t *testing.T) {
			g := newGroup(t, tree, "p1")
			cmd := exec.CommandContext(t.Context(), "setsid", "sh", "-c", "sleep 60 & sleep 61 & exit 0")
			cmd.SysProcAttr = g.Attributes()
			if err := cmd.Run(); err != nil {
				t.Skip(err)
			}
			g.Started()
			if got := mustProcesses(t, g.dir); len(got) != 2 {
				t.Fatalf("the group has %v, want two processes", got)
			}
			end(g)
			waitFor(t, "the end of the processes", func() bool { return len(mustProcesses(t, g.dir)) == 0 })
			if err := g.Remove(); err != nil {
				t.Error(err)
			}
			if got := names(t, tree.dir); len(got) != 0 {
				t.Errorf("%v is left", got)
			}
		})
	}
}

// TestCloseEndsAllGroups closes a tree with a group that has a process and a cgroup below.
func TestCloseEndsAllGroups(t *testing.T) {
	tree := openTree(t, Limits{})
	g := newGroup(t, tree, "p1")
	below := filepath.Join(g.dir, "below")
	if err := os.Mkdir(below, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := command(t, below, "sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go cmd.Wait()
	tree.Close()
	if got := names(t, tree.Root); len(got) != 0 {
		t.Errorf("%v is left", got)
	}
}

// require skips a test unless a controller limits the tree.
func require(t *testing.T, tree *Tree, controller string) {
	t.Helper()
	if !slices.Contains(tree.Controllers, controller) {
		t.Skipf("the cgroup v2 of this machine has not enabled the controller %s, but %v", controller, tree.Controllers)
	}
}

// TestProcessesAreLimited starts more processes than a group may have.
func TestProcessesAreLimited(t *testing.T) {
	tree := openTree(t, Limits{Processes: 10})
	require(t, tree, "pids")
	g := newGroup(t, tree, "p1")
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 60 & done; wait")
	cmd.SysProcAttr = g.Attributes()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the limit", func() bool { return !strings.HasSuffix(content(t, g.dir, "pids.events"), "max 0") })
	if n := len(mustProcesses(t, g.dir)); n > 10 {
		t.Errorf("%d processes", n)
	}
	g.Kill()
	_ = cmd.Wait()
}

// TestMemoryIsLimited starts processes that need more memory than their group, or all groups together, may have.
func TestMemoryIsLimited(t *testing.T) {
	const limit = 64 << 20
	tree := openTree(t, Limits{Memory: limit})
	require(t, tree, "memory")
	for _, tc := range []struct {
		name  string
		size  int
		outer string
		want  Exhaustion
	}{
		{"little", 1 << 20, "max", NotExhausted},
		{"much", 4 * limit, "max", OwnLimit},
		{"much of all", limit / 2, strconv.Itoa(limit / 4), OuterLimit},
	} {
		if err := write(tree.dir, "memory.max", tc.outer); err != nil {
			t.Fatal(err)
		}
		g := newGroup(t, tree, tc.name)
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), fmt.Sprintf("CGROUP_TEST_MEMORY=%d", tc.size))
		cmd.SysProcAttr = g.Attributes()
		err := cmd.Run()
		if killed := err != nil; killed != (tc.want != NotExhausted) {
			t.Errorf("%s: %v", tc.name, err)
		}
		if got := g.Exhausted(); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}

func TestExhaustion(t *testing.T) {
	for events, want := range map[string]Exhaustion{
		"": NotExhausted,
		"low 0\nhigh 0\nmax 12\noom 0\noom_kill 0\noom_group_kill 0\n": NotExhausted, // it freed memory in time
		"low 0\nhigh 0\nmax 24\noom 1\noom_kill 3\noom_group_kill 1\n": OwnLimit,
		"low 0\nhigh 0\nmax 0\noom 0\noom_kill 1\noom_group_kill 0\n":  OuterLimit,
	} {
		if got := exhaustion(events); got != want {
			t.Errorf("%q: %v, want %v", events, got, want)
		}
	}
}

func TestCandidates(t *testing.T) {
	const v1 = "24 23 0:21 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"
	for reason, tc := range map[string]struct {
		cgroups, mounts string
		want            []string
	}{
		"systemd": {"0::/system.slice/hykube.service\n", "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n",
			[]string{"/sys/fs/cgroup/system.slice/hykube.service"}},
		"hybrid":                         {"4:memory:/a\n0::/b\n", v1 + "30 23 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n", []string{"/sys/fs/cgroup/unified/b"}},
		"no cgroup v2":                   {"4:memory:/a\n", v1, nil},
		"not mounted":                    {"4:memory:/a\n0::/b\n", v1, nil},
		"a mount of a part":              {"0::/a/b\n", "30 23 0:26 /a /mnt rw - cgroup2 none rw\n31 23 0:26 /c /mnt2 rw - cgroup2 none rw\n", []string{"/mnt/b"}},
		"outside of the namespace":       {"0::/../a\n", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", nil},
		"a mount point with a space":     {"0::/a\n", `30 23 0:26 / /mnt/my\040cgroups rw - cgroup2 none rw` + "\n", []string{"/mnt/my cgroups/a"}},
		"a mount above of the namespace": {"0::/a\n", "30 23 0:26 /../.. /mnt rw - cgroup2 none rw\n", nil},
	} {
		t.Run(reason, func(t *testing.T) {
			if got := candidates(tc.cgroups, tc.mounts); !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
