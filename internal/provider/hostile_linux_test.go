package provider

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/internal/provider/contain"
	"github.com/hykube/hykube/internal/provider/plugin"
	"github.com/hykube/hykube/internal/schema"
)

// hostilePackage is a provider that attacks its machine.
func hostilePackage(t *testing.T) Package {
	t.Helper()
	dir := t.TempDir()
	exe := filepath.Join(dir, "terraform-provider-hostile")
	build := exec.Command("go", "build", "-o", exe, "./testdata/hostile")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build hostile: %v: %s", err, out)
	}
	pkg := packageAt(t, Source{"example.com", "test", "hostile"}, "1.0.0", exe)
	pkg.Grants = contain.Grants{}
	return pkg
}

// attack makes the provider attempt an action, and returns its report.
func attack(t *testing.T, l *Lease, name, target string) (string, error) {
	t.Helper()
	ty := l.Schema.DataSources["hostile_attempt"].Block.ImpliedType()
	config, err := schema.Encode(object("name", name, "target", target, "result", noString), ty)
	if err != nil {
		t.Fatal(err)
	}
	r, err := l.ReadDataSource(t.Context(), &tfprotov6.ReadDataSourceRequest{TypeName: "hostile_attempt", Config: config})
	if err != nil {
		return "", err
	}
	if hasErrors(r.Diagnostics) {
		t.Fatal(diagnosticsError(r.Diagnostics))
	}
	v, err := schema.Decode(r.State, ty)
	if err != nil {
		t.Fatal(err)
	}
	return v.GetAttr("result").AsString(), nil
}

// estate holds the targets of a hostile provider.
type estate struct {
	dir, key, database string
	server, neighbour  string // process IDs
	home, socket       string // of the neighbour
	abstract, tcp      string // addresses
}

func newEstate(t *testing.T, neighbour *Lease) estate {
	t.Helper()
	dir := t.TempDir()
	e := estate{dir: dir, key: filepath.Join(dir, "encryption.key"), database: filepath.Join(dir, "state.db")}
	for _, path := range []string{e.key, e.database} {
		if err := os.WriteFile(path, []byte("secret"), 0o644); err != nil { // modes must not be all that protects it
			t.Fatal(err)
		}
	}
	for d := dir; d != os.TempDir(); d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	pid := neighbour.process.plugin.PID()
	e.server, e.neighbour = strconv.Itoa(os.Getpid()), strconv.Itoa(pid)
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		t.Fatal(err)
	}
	for kv := range strings.SplitSeq(string(environ), "\x00") {
		if name, value, _ := strings.Cut(kv, "="); name == "HOME" {
			e.home = filepath.Dir(value)
		}
	}
	sockets, err := filepath.Glob(filepath.Join(e.home, "plugin-dir*", "plugin*"))
	if err != nil || len(sockets) == 0 {
		t.Fatalf("the neighbour has no socket in %s: %v", e.home, err)
	}
	e.socket = sockets[0]
	e.abstract = fmt.Sprintf("@hostile-test-%d", os.Getpid())
	for _, l := range []struct{ network, address string }{{"unix", e.abstract}, {"tcp", "127.0.0.1:0"}} {
		listener, err := net.Listen(l.network, l.address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { listener.Close() })
		e.tcp = listener.Addr().String()
	}
	return e
}

// TestHostileProviderIsContained has a provider attack the server and another provider. The attempts marked with open
// succeed without a sandbox, when the server is root; so the test can fail.
func TestHostileProviderIsContained(t *testing.T) {
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	pkg := hostilePackage(t)
	p := newPool(t, PoolConfig{})
	report := p.config.Containment.Report(pkg.Source.String(), pkg.Grants)
	if !report.Contained {
		t.Skip("this machine has no sandbox: " + report.Message)
	}
	neighbour := acquire(t, p, tinyPackage(t), Configuration{Key: "neighbour"})
	e := newEstate(t, neighbour)
	ports := pkg
	ports.Grants.ConnectPorts = []uint16{9}
	contained := acquire(t, p, pkg, Configuration{Key: "hostile"})
	few := acquire(t, p, ports, Configuration{Key: "hostile"})
	off := pkg
	off.Grants.Off = true
	open := acquire(t, p, off, Configuration{Key: "hostile"})

	type attempt struct {
		name, target string
		open         bool
	}
	attempts := []attempt{
		{"read a file", e.key, true}, {"read a file", e.database, true}, {"read a file", "/etc/passwd", true}, {"read a file", "/etc/shadow", true},
		{"read through a symlink", e.key, true}, {"list a directory", e.dir, true}, {"list a directory", "/", true}, {"list a directory", "/proc", true},
		{"list a directory", e.home, true}, {"link a file", e.key, false}, {"write a file", filepath.Join(e.dir, "new"), true},
		{"write a file", e.key, false}, {"write a file", "/tmp/hostile-was-here", false}, {"change a mode", e.key, true}, {"remove a file", e.key, false},
		{"rename a file", e.key, false}, {"truncate a file", e.database, false}, {"rewrite its own program", "", true},
		{"rewrite its package", filepath.Dir(pkg.Executable), false}, {"open a file by its handle", e.key, true}, {"execute a program", "/bin/true", true},

		{"read an environment", e.server, true}, {"read memory", e.server, true}, {"read a memory map", e.server, true}, {"list open files", e.server, true},
		{"list a root", e.server, true}, {"list a work directory", e.server, true}, {"ptrace", e.server, false}, {"copy memory", e.server, true},
		{"signal", e.server, true}, {"signal by descriptor", e.server, true}, {"limit a process", e.server, false}, {"take a descriptor", e.server, true},
		{"pin a process to a processor", e.server, false}, {"leave the process group", "", false},
		{"read an environment", e.neighbour, true}, {"read memory", e.neighbour, true}, {"copy memory", e.neighbour, true}, {"list open files", e.neighbour, true},
		{"signal", e.neighbour, true}, {"ptrace", e.neighbour, false},

		{"connect to a socket", e.socket, true}, {"connect to a socket", e.abstract, true}, {"raw sockets", "", true}, {"the hypervisor", "", false},
		{"kernel crypto", "", false}, {"netfilter", "", true},

		{"become root", "", true}, {"a group of root", "", true}, {"capabilities", "", true}, {"raise its limits", "", false}, {"mount", e.dir, false}, {"a user namespace", "", false},
		{"cloned namespaces", "", false}, {"enter a namespace", e.server, true}, {"chroot", e.dir, false}, {"keys", "", false}, {"bpf", "", true},
		{"io_uring", "", false}, {"perf", "", true}, {"userfaultfd", "", false}, {"kexec", "", false}, {"a module", "", false}, {"the hostname", "", true},
		{"shared memory", "", false}, {"a large file", "", true}, {"much memory", "", true}, {"a core dump", "", true},
		{"a variable", "AWS_SECRET_ACCESS_KEY", false}, {"a variable", "HYKUBE_TEST_KEEP", false},
	}
	if len(attempts) < 30 {
		t.Fatalf("only %d attempts", len(attempts))
	}
	for _, a := range attempts {
		t.Run(a.name+" "+filepath.Base(a.target), func(t *testing.T) {
			if said, err := attack(t, contained, a.name, a.target); err != nil || !strings.HasPrefix(said, "contained") {
				t.Errorf("contained: %q, %v", said, err)
			}
			if !a.open || os.Getuid() != 0 {
				return
			}
			if said, err := attack(t, open, a.name, a.target); err != nil || said != "escaped" {
				t.Errorf("without a sandbox: %q, %v; an attempt that always fails tests nothing", said, err)
			}
		})
	}
	t.Run("ports", func(t *testing.T) {
		if said, err := attack(t, few, "connect", e.tcp); err != nil || !strings.HasPrefix(said, "contained") {
			t.Errorf("a port that was not granted: %q, %v", said, err)
		}
		if said, err := attack(t, contained, "connect", e.tcp); err != nil || said != "escaped" {
			t.Errorf("without spec.sandbox.connectPorts: %q, %v", said, err)
		}
	})
	if content, err := os.ReadFile(e.key); err != nil || string(content) != "secret" {
		t.Errorf("the key is %q, %v", content, err)
	}
	goesOn(t, neighbour)
}

// goesOn checks that a provider works.
func goesOn(t *testing.T, l *Lease) {
	t.Helper()
	if _, _, err := create(t.Context(), l, "tiny_thing", map[string]cty.Value{"name": cty.StringVal("a")}); err != nil {
		t.Errorf("another provider does not go on: %v", err)
	}
}

// TestHostileProviderFloods has a provider answer with too much, write too much, and not answer at all. Another one
// goes on meanwhile.
func TestHostileProviderFloods(t *testing.T) {
	t.Parallel()
	var log lockedBuffer
	p := newPool(t, PoolConfig{StopTimeout: 2 * time.Second, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	neighbour := acquire(t, p, tinyPackage(t), Configuration{Key: "neighbour"})
	pkg := hostilePackage(t)
	l := acquire(t, p, pkg, Configuration{Key: "hostile"})

	if said, err := attack(t, l, "flood the log", ""); err != nil || said != "contained: it ended" {
		t.Errorf("flood of the log: %q, %v", said, err)
	}
	waitFor(t, "the count of dropped lines", func() bool { return strings.Contains(log.String(), "dropped=") })
	if got := len(log.String()); got > 16<<20 {
		t.Errorf("64 MiB of log lines became %d bytes of the server's log", got)
	}
	goesOn(t, neighbour)

	done := make(chan error, 1)
	go func() {
		_, err := attack(t, l, "hang", "")
		done <- err
	}()
	_, err := attack(t, l, "answer with 1 GiB", "")
	_, large := errors.AsType[*plugin.TooLargeError](err)
	_, lost := errors.AsType[*UnavailableError](err) // its memory may be the first limit
	if !large && !lost {
		t.Errorf("an answer of 1 GiB: %v", err)
	}
	goesOn(t, neighbour)
	if err := p.Close(t.Context()); err == nil {
		t.Error("the pool closed in good order, with a provider that hangs and ignores Stop")
	}
	if err := <-done; err == nil {
		t.Error("the call that hangs was answered")
	}
	waitForProcesses(t, p, 0)
}

// TestHostileProviderFillsTheDisk has a provider write too much into its temporary directory. The server ends it, and
// another one goes on.
func TestHostileProviderFillsTheDisk(t *testing.T) {
	t.Parallel()
	p := newPool(t, PoolConfig{Containment: contain.New(contain.Config{MaxBytes: 64 << 20, MaxFiles: 1000})})
	pkg := hostilePackage(t)
	if r := p.config.Containment.Report(pkg.Source.String(), pkg.Grants); r.Off || !r.Contained {
		t.Skip("this machine has no sandbox: " + r.Message)
	}
	neighbour := acquire(t, p, tinyPackage(t), Configuration{Key: "neighbour"})
	for _, name := range []string{
		"fill its directory", "fill its directory with small files", "fill its directory with deleted files",
		"fill its directory with deleted files in memory", "hide files",
	} {
		t.Run(name, func(t *testing.T) {
			l := acquire(t, p, pkg, Configuration{Key: "hostile"})
			said, err := attack(t, l, name, "")
			lost, ok := errors.AsType[*UnavailableError](err)
			if !ok || !strings.Contains(lost.Reason, "its temporary directory") {
				t.Errorf("%q, %v; the server must end the process, and name the reason", said, err)
			}
			goesOn(t, neighbour)
		})
	}
}

// TestHostileProviderForks has a provider start processes without end. Another one goes on meanwhile, and no process
// stays.
func TestHostileProviderForks(t *testing.T) {
	p := newPool(t, PoolConfig{StopTimeout: 2 * time.Second})
	pkg := hostilePackage(t)
	user := p.config.Containment.User(pkg.Source.String(), pkg.Grants)
	if user == 0 {
		t.Skip("the limit on processes would also count the processes of this user; run this test as root")
	}
	neighbour := acquire(t, p, tinyPackage(t), Configuration{Key: "neighbour"})
	hostile := acquire(t, p, pkg, Configuration{Key: "hostile"})
	said, err := attack(t, hostile, "fork without end", "")
	_, lost := errors.AsType[*UnavailableError](err) // Go programs end if they cannot start a thread
	if !lost && !strings.HasPrefix(said, "contained") {
		t.Errorf("forks: %q, %v", said, err)
	}
	if n := processesOf(t, user); n < 100 && !lost || n > 4096 {
		t.Errorf("%d processes, want some and at most 4096", n)
	}
	goesOn(t, neighbour)
	hostile.Release()
	_ = p.Close(t.Context()) // a provider that could not start a thread does not end by itself
	waitFor(t, "the end of all processes", func() bool { return processesOf(t, user) == 0 })
}

// processesOf counts the processes of a user.
func processesOf(t *testing.T, user int) int {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, dir := range dirs {
		if info, err := os.Stat(dir); err == nil && int(info.Sys().(*syscall.Stat_t).Uid) == user {
			count++
		}
	}
	return count
}
