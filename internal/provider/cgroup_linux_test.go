package provider

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hykube/hykube/internal/provider/contain"
	"github.com/hykube/hykube/internal/provider/contain/cgroup/cgrouptest"
)

// cgroupPool is a pool whose processes have cgroups below root. It skips the test if they lack a controller.
func cgroupPool(t *testing.T, c contain.Config, controller string) (p *Pool, root string) {
	t.Helper()
	root = cgrouptest.NewRoot(t)
	policy := contain.New(c)
	if err := policy.UseCgroup(root, slog.New(slog.DiscardHandler)); err != nil {
		policy.Close()
		t.Fatal(err)
	}
	message := policy.Report("a", contain.Grants{}).Message
	holds, missing, _ := strings.Cut(message, "Missing on this machine")
	if !strings.Contains(holds, "a cgroup") || strings.Contains(missing, "the cgroup controller "+controller) {
		policy.Close()
		t.Skip("this machine has no such cgroups: " + message)
	}
	return newPool(t, PoolConfig{Containment: policy, StopTimeout: 2 * time.Second}), root
}

// groups returns the cgroups of processes below root.
func groups(t *testing.T, root string) []string {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(root, "hykube-providers-*", "p*", "cgroup.procs"))
	if err != nil {
		t.Fatal(err)
	}
	return dirs
}

// TestProcessesHaveCgroups starts two providers, of which one turns its sandbox off. Only the other one has a cgroup,
// which ends with its process.
func TestProcessesHaveCgroups(t *testing.T) {
	p, root := cgroupPool(t, contain.Config{}, "none")
	pkg := tinyPackage(t)
	l := acquire(t, p, pkg, Configuration{Key: "a", Config: tinyConfig("eu")})
	off := pkg
	off.Grants.Off = true
	acquire(t, p, off, Configuration{Key: "a", Config: tinyConfig("eu")}).Release()

	found := groups(t, root)
	if len(found) != 1 {
		t.Fatalf("the cgroups are %v, want one", found)
	}
	pid := l.process.plugin.PID()
	if got, err := os.ReadFile(found[0]); err != nil || string(got) != fmt.Sprintln(pid) {
		t.Errorf("the cgroup has the processes %q, %v, want %d", got, err, pid)
	}
	goesOn(t, l)
	l.Release()
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if left, err := filepath.Glob(filepath.Join(root, "hykube-*")); err != nil || len(left) != 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

// TestHostileProviderForksInItsCgroup has a provider start processes without end. Its cgroup allows few, although its
// user may have more.
func TestHostileProviderForksInItsCgroup(t *testing.T) {
	const limit = 64
	p, root := cgroupPool(t, contain.Config{MaxProcesses: limit}, "pids")
	hostile := acquire(t, p, hostilePackage(t), Configuration{Key: "hostile"})
	said, err := attack(t, hostile, "fork without end", "")
	_, lost := errors.AsType[*UnavailableError](err) // Go programs end if they cannot start a thread
	if !lost && !strings.HasPrefix(said, "contained") {
		t.Errorf("forks: %q, %v", said, err)
	}
	if events, err := os.ReadFile(filepath.Join(filepath.Dir(groups(t, root)[0]), "pids.events")); !lost && (err != nil || string(events) == "max 0\n") {
		t.Errorf("the cgroup refused no process: %q, %v", events, err)
	}
	hostile.Release()
	_ = p.Close(t.Context()) // a provider that could not start a thread does not end by itself
	if left := groups(t, root); len(left) != 0 {
		t.Errorf("%v is left", left)
	}
}

// TestHostileProviderUsesMemory has a provider use much memory. Resource limits do not count shared memory. The kernel
// ends the provider, the error names the flag, and another provider goes on.
func TestHostileProviderUsesMemory(t *testing.T) {
	p, _ := cgroupPool(t, contain.Config{MaxMemory: 256 << 20}, "memory")
	neighbour := acquire(t, p, tinyPackage(t), Configuration{Key: "neighbour"})
	pkg := hostilePackage(t)
	for _, name := range []string{"use shared memory", "use private memory"} {
		hostile := acquire(t, p, pkg, Configuration{Key: "hostile"})
		said, err := attack(t, hostile, name, "")
		lost, ok := errors.AsType[*UnavailableError](err)
		if !ok || !strings.Contains(lost.Reason, "it needs more than 256 MiB of memory; raise --provider-memory-limit") {
			t.Errorf("%s: %q, %v", name, said, err)
		}
		goesOn(t, neighbour)
	}
}
