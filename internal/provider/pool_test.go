package provider

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/schema"
)

// tinyBinary builds testdata/tiny once for all tests.
var tinyBinary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "tiny")
	if err != nil {
		return "", err
	}
	out, err := exec.Command("go", "build", "-o", dir+"/", "./testdata/tiny").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return filepath.Join(dir, "tiny"), nil
})

func TestPoolRunsAProtocol6Provider(t *testing.T) {
	t.Parallel()
	pkg := tinyPackage(t)
	p := newPool(t, PoolConfig{})

	s, err := p.Schema(t.Context(), pkg)
	if err != nil {
		t.Fatalf("schema: %v", err)
	}
	thing := s.Resources["tiny_thing"].Block
	if !thing.Attribute("token").WriteOnly || !thing.Attribute("secret").Sensitive || !thing.Attribute("name").Required {
		t.Errorf("attributes lost their flags: %+v", thing.Attributes)
	}
	again, err := p.Schema(t.Context(), pkg)
	if err != nil || again != s {
		t.Errorf("second schema = %p, %v; want the one in memory, %p", again, err, s)
	}

	diags, err := p.ValidateConfig(t.Context(), pkg, tinyConfig("eu"))
	if err != nil || len(diags) != 0 {
		t.Errorf("validate a good configuration: %v, %v", diags, err)
	}

	l := acquire(t, p, pkg, Configuration{Key: "eu", Config: tinyConfig("eu")})
	v, applied, err := create(t.Context(), l, "tiny_thing", map[string]cty.Value{
		"name": cty.StringVal("a"), "token": cty.StringVal("-t"),
	})
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	if got, want := v.GetAttr("id").AsString(), "id-a-t"; got != want {
		t.Errorf("id = %q, want %q: the write-only value must reach the provider", got, want)
	}
	if got, want := v.GetAttr("where").AsString(), "eu/"+terraformVersion; got != want {
		t.Errorf("configured with %q, want %q", got, want)
	}
	if !strings.Contains(string(applied.Private), `kept`) {
		t.Errorf("private data was lost: %q", applied.Private)
	}

	same := acquire(t, p, pkg, Configuration{Key: "eu", Config: tinyConfig("eu")})
	other := acquire(t, p, pkg, Configuration{Key: "us", Config: tinyConfig("us")})
	changed := acquire(t, p, pkg, Configuration{Key: "eu", Config: tinyConfig("eu-2")})
	none := acquire(t, p, pkg, Configuration{Key: "none"})
	if same.process != l.process {
		t.Error("one key has two processes")
	}
	if other.process == l.process || changed.process == l.process || none.process == l.process {
		t.Error("different configurations share a process")
	}
}

func TestPoolConfigurationRefused(t *testing.T) {
	t.Parallel()
	pkg := tinyPackage(t)
	p := newPool(t, PoolConfig{ConfigureTimeout: 3 * time.Second})

	_, err := p.Acquire(t.Context(), pkg, Configuration{Key: "k", Config: tinyConfig("nowhere")})
	ce, ok := errors.AsType[*diag.Failure](err)
	if !ok || len(ce.Diagnostics) == 0 {
		t.Fatalf("got %v, want a *diag.Failure with diagnostics", err)
	}
	if got := ce.Diagnostics[0].Detail; got != `There is no region "nowhere".` {
		t.Errorf("the provider's words were lost: %q", got)
	}
	_, err = p.Acquire(t.Context(), pkg, Configuration{Key: "k", Config: tinyConfig("crash")})
	crash, ok := errors.AsType[*CrashError](err)
	if !ok || !strings.Contains(err.Error(), "that region kills me") || !strings.Contains(crash.Reason, "exit status 2") {
		t.Errorf("died in Configure: got %v", err)
	}
	_, err = p.Acquire(t.Context(), pkg, Configuration{Key: "k", Config: tinyConfig("hang")})
	if _, ok := errors.AsType[*CrashError](err); !ok || !strings.Contains(err.Error(), "did not answer in time") {
		t.Errorf("hung in Configure: got %v", err)
	}
	// The pool is none the worse for it.
	acquire(t, p, pkg, Configuration{Key: "k", Config: tinyConfig("eu")})
	waitForProcesses(t, p, 1)
}

func TestPoolStartFailures(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ mode, reason, stderr string }{
		{"crash", "exit status 3", "no licence found"},
		{"panic", "exit status 2", "panic: the sky fell down"},
		{"hang", "not ready after 2s", "waiting for the moon"},
		{"garbage", "does not behave like a Terraform provider: it answered the handshake with \"hello, I am not a plugin\"", ""},
		{"protocol4", "incompatible API version", ""},
	} {
		t.Run(tc.mode, func(t *testing.T) {
			t.Parallel()
			p := newPool(t, PoolConfig{StartTimeout: 2 * time.Second}, "TINY_MODE="+tc.mode)
			_, err := p.Schema(t.Context(), tinyPackage(t))
			crash, ok := errors.AsType[*CrashError](err)
			if !ok {
				t.Fatalf("got %v, want a CrashError", err)
			}
			if !strings.Contains(crash.Reason, tc.reason) {
				t.Errorf("reason = %q, want %q in it", crash.Reason, tc.reason)
			}
			if tc.stderr != "" && !strings.Contains(strings.Join(crash.Stderr, "\n"), tc.stderr) {
				t.Errorf("stderr = %q, want %q in it", crash.Stderr, tc.stderr)
			}
			waitForProcesses(t, p, 0)
		})
	}
	t.Run("not a program", func(t *testing.T) {
		t.Parallel()
		exe := filepath.Join(t.TempDir(), "terraform-provider-text")
		if err := os.WriteFile(exe, []byte("\x7fELF but not really"), 0o755); err != nil {
			t.Fatal(err)
		}
		p := newPool(t, PoolConfig{})
		_, err := p.Schema(t.Context(), packageAt(t, Source{"example.com", "test", "text"}, "1.0.0", exe))
		if _, ok := errors.AsType[*CrashError](err); !ok || !strings.Contains(err.Error(), "not an executable for this machine") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("changed binary", func(t *testing.T) {
		t.Parallel()
		exe := filepath.Join(t.TempDir(), "terraform-provider-evil")
		if err := os.WriteFile(exe, []byte("good"), 0o755); err != nil {
			t.Fatal(err)
		}
		pkg := packageAt(t, Source{"example.com", "test", "evil"}, "1.0.0", exe)
		if err := os.WriteFile(exe, []byte("evil"), 0o755); err != nil {
			t.Fatal(err)
		}
		_, err := newPool(t, PoolConfig{}).Schema(t.Context(), pkg)
		if _, ok := errors.AsType[*ChecksumError](err); !ok {
			t.Errorf("got %v, want a ChecksumError", err)
		}
	})
	t.Run("caller gives up", func(t *testing.T) {
		t.Parallel()
		p := newPool(t, PoolConfig{}, "TINY_MODE=hang")
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := p.Schema(ctx, tinyPackage(t)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the context's error", err)
		}
	})
}

func TestPoolRestartsWhatDied(t *testing.T) {
	t.Parallel()
	pkg := tinyPackage(t)
	var log lockedBuffer
	p := newPool(t, PoolConfig{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	c := Configuration{Key: "k", Config: tinyConfig("eu")}

	l := acquire(t, p, pkg, c)
	first := l.process.plugin.PID()
	inFlight := make(chan error, 1)
	go func() {
		_, _, err := create(t.Context(), l, "tiny_thing", map[string]cty.Value{"name": cty.StringVal("slow")})
		inFlight <- err
	}()
	waitFor(t, "a call in flight", func() bool { return strings.Contains(log.String(), "creating slowly") })
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	err := <-inFlight
	lost, ok := errors.AsType[*UnavailableError](err)
	if !ok || !strings.Contains(lost.Reason, "killed") || !diag.IsFailure(err, diag.Unreachable) {
		t.Errorf("call in flight: %v, want an unreachable provider, with an UnavailableError that says killed", err)
	}
	l.Release()
	l = acquire(t, p, pkg, c)
	if l.process.plugin.PID() == first {
		t.Error("the dead process was lent again")
	}

	_, _, err = create(t.Context(), l, "tiny_thing", map[string]cty.Value{"name": cty.StringVal("suicide")})
	if lost, ok := errors.AsType[*UnavailableError](err); !ok || !strings.Contains(strings.Join(lost.Stderr, "\n"), "create went wrong") {
		t.Errorf("panic in create: %v, want an UnavailableError with the panic", err)
	}
	l = acquire(t, p, pkg, c)
	if _, _, err := create(t.Context(), l, "tiny_thing", map[string]cty.Value{"name": cty.StringVal("b")}); err != nil {
		t.Errorf("after the restarts: %v", err)
	}
}

func TestPoolApplyOutlivesItsCaller(t *testing.T) {
	t.Parallel()
	p := newPool(t, PoolConfig{})
	l := acquire(t, p, tinyPackage(t), Configuration{Key: "k"})
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, applied, err := create(ctx, l, "tiny_thing", map[string]cty.Value{"name": cty.StringVal("slow")})
	// The read that follows sees the cancelled context; the apply itself must have been stopped in good order.
	if applied == nil || len(applied.Diagnostics) != 1 || applied.Diagnostics[0].Summary != "Stopped" {
		t.Fatalf("applied = %+v, %v; want the provider's whole answer", applied, err)
	}
	if len(applied.NewState.MsgPack) == 0 {
		t.Error("the state was lost")
	}
}

func TestPoolIdleProcessesEnd(t *testing.T) {
	t.Parallel()
	pkg := tinyPackage(t)
	p := newPool(t, PoolConfig{IdleTimeout: 50 * time.Millisecond})
	l := acquire(t, p, pkg, Configuration{Key: "k"})
	if got := children(t, l.process.plugin.PID()); got != 1 {
		t.Fatalf("%d processes in the group, want 1", got)
	}
	l.Release()
	waitForProcesses(t, p, 0)
	if got := children(t, l.process.plugin.PID()); got != 0 {
		t.Errorf("%d processes are left in the group", got)
	}
	acquire(t, p, pkg, Configuration{Key: "k"}) // and it comes back
}

func TestPoolLimit(t *testing.T) {
	t.Parallel()
	pkg := tinyPackage(t)
	p := newPool(t, PoolConfig{MaxProcesses: 2})
	a := acquire(t, p, pkg, Configuration{Key: "a"})
	b := acquire(t, p, pkg, Configuration{Key: "b"})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := p.Acquire(ctx, pkg, Configuration{Key: "c"}); err == nil || !strings.Contains(err.Error(), "wait for a free provider process (of 2") {
		t.Fatalf("a third process: %v, want to wait", err)
	}
	got := make(chan error, 1)
	go func() {
		l, err := p.Acquire(context.Background(), pkg, Configuration{Key: "c"})
		if err == nil {
			defer l.Release()
		}
		got <- err
	}()
	b.Release() // idle, and so evicted for c
	if err := <-got; err != nil {
		t.Fatalf("third process after a release: %v", err)
	}
	if _, _, err := create(t.Context(), a, "tiny_thing", map[string]cty.Value{"name": cty.StringVal("x")}); err != nil {
		t.Errorf("a process in use was evicted: %v", err)
	}
}

func TestPoolReplacesWornProcesses(t *testing.T) {
	t.Parallel()
	pkg := tinyPackage(t)
	p := newPool(t, PoolConfig{MaxCalls: 5})
	first := acquire(t, p, pkg, Configuration{Key: "k"})
	if _, _, err := create(t.Context(), first, "tiny_thing", map[string]cty.Value{"name": cty.StringVal("a")}); err != nil {
		t.Fatal(err)
	}
	second := acquire(t, p, pkg, Configuration{Key: "k"})
	if first.process == second.process {
		t.Fatal("a worn process was lent again")
	}
	if _, _, err := create(t.Context(), first, "tiny_thing", map[string]cty.Value{"name": cty.StringVal("b")}); err != nil {
		t.Errorf("a worn process ended before its lease: %v", err)
	}
	first.Release()
	waitForProcesses(t, p, 1)
}

// TestPoolDiesWithTheServer kills the server, here another run of this test binary, in a way that lets it do nothing
// any more.
func TestPoolDiesWithTheServer(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux lets a child die with its parent")
	}
	t.Parallel()
	pkg := tinyPackage(t)
	server := exec.Command(os.Args[0])
	server.Env = append(os.Environ(), serverEnv+"="+pkg.Executable)
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Process.Kill() }()
	var pid int
	if _, err := fmt.Fscan(out, &pid); err != nil {
		t.Fatalf("the server did not start: %v", err)
	}
	if got := children(t, pid); got != 1 {
		t.Fatalf("%d processes in the group, want 1", got)
	}
	if err := server.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = server.Wait()
	waitFor(t, "the end of the plugin", func() bool { return children(t, pid) == 0 })
}

const serverEnv = "PROVIDER_TEST_SERVER"

// serveForTest starts the plugin, prints its process ID and waits until it is killed.
func serveForTest(exe string) error {
	sum, err := hashDir(filepath.Dir(exe))
	if err != nil {
		return err
	}
	pkg := Package{Source: Source{"example.com", "test", "tiny"}, Version: "1.0.0", Executable: exe, Checksum: sum}
	l, err := NewPool(PoolConfig{}).Acquire(context.Background(), pkg, Configuration{Key: "k"})
	if err != nil {
		return err
	}
	fmt.Println(l.process.plugin.PID())
	select {}
}

func TestPoolCloseLeavesNoChild(t *testing.T) {
	t.Parallel()
	pkg := tinyPackage(t)
	pkg.Grants.ExecutePaths = []string{"/bin", "/usr/bin"} // it runs sleep
	var log lockedBuffer
	p := newPool(t, PoolConfig{StopTimeout: 10 * time.Second, Logger: slog.New(slog.NewTextHandler(&log, nil))}, "TINY_MODE=child")
	l := acquire(t, p, pkg, Configuration{Key: "k"})
	pid := l.process.plugin.PID()
	if got := children(t, pid); got != 2 {
		t.Fatalf("%d processes in the group, want the plugin and its child", got)
	}
	done := make(chan error, 1)
	go func() {
		defer l.Release()
		_, applied, err := create(context.WithoutCancel(t.Context()), l, "tiny_thing", map[string]cty.Value{"name": cty.StringVal("slow")})
		if applied == nil {
			done <- fmt.Errorf("the apply in flight was cut off: %w", err)
			return
		}
		done <- nil
	}()
	waitFor(t, "a call in flight", func() bool { return strings.Contains(log.String(), "creating slowly") })
	if err := p.Close(t.Context()); err != nil {
		t.Errorf("close: %v", err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got := children(t, pid); got != 0 {
		t.Errorf("%d processes are left", got)
	}
	if _, err := p.Acquire(t.Context(), pkg, Configuration{Key: "k"}); !errors.Is(err, ErrClosed) {
		t.Errorf("acquire after close: %v, want ErrClosed", err)
	}
}

func TestPoolRunsAProtocol5Provider(t *testing.T) {
	t.Parallel()
	exe := installTime(t)
	pkg := packageAt(t, Source{"registry.terraform.io", "hashicorp", "time"}, "0.14.2", exe)
	p := newPool(t, PoolConfig{})
	l := acquire(t, p, pkg, Configuration{Key: "default"})
	if got := l.process.plugin.Protocol; got != 5 {
		t.Fatalf("protocol %d; the test is about 5", got)
	}
	v, _, err := create(t.Context(), l, "time_static", map[string]cty.Value{"rfc3339": cty.StringVal("2026-01-02T03:04:05Z")})
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	if diff := cmp.Diff("2026", v.GetAttr("year").AsBigFloat().Text('f', 0)); diff != "" {
		t.Errorf("year: %s", diff)
	}
	rotating := l.Schema.Resources["time_rotating"].Block
	if a := rotating.Attribute("rotation_days"); a == nil || a.Type != cty.Number || !a.Optional || a.WriteOnly {
		t.Errorf("rotation_days = %+v", a)
	}
	r, err := l.CallFunction(t.Context(), &tfprotov6.CallFunctionRequest{Name: "rfc3339_parse", Arguments: []*tfprotov6.DynamicValue{
		mustEncode(t, cty.StringVal("2026-01-02T03:04:05Z"), cty.String)}})
	if err != nil || r.Error != nil {
		t.Errorf("call function: %+v, %v", r, err)
	}
	if _, err := l.GenerateResourceConfig(t.Context(), &tfprotov6.GenerateResourceConfigRequest{TypeName: "no_such"}); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("an unknown call: %v, want ErrUnsupported or an answer", err)
	}
}

func mustEncode(t *testing.T, v cty.Value, ty cty.Type) *tfprotov6.DynamicValue {
	t.Helper()
	d, err := schema.Encode(v, ty)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
