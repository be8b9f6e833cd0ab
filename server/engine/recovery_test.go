package engine_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"github.com/hykube/hykube/server/engine"
)

// childDir makes the test binary a server on that directory, which a test can kill. It starts so many climbers.
const (
	childDir      = "ENGINE_TEST_CHILD_DIR"
	childClimbers = "ENGINE_TEST_CHILD_CLIMBERS"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		if err := child(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func child(dir string) error {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	e, err := engine.New(engine.Config{DataDir: dir, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		return err
	}
	begin := time.Now()
	if err := e.Start(ctx); err != nil {
		return err
	}
	w := worker.New(e.Client(), queue, worker.Options{})
	w.RegisterWorkflow(climb)
	w.RegisterActivity(step)
	if err := w.Start(); err != nil {
		return err
	}
	climbers, _ := strconv.Atoi(os.Getenv(childClimbers))
	for i := range climbers {
		if _, err := e.Client().ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: fmt.Sprintf("climb-%d", i), TaskQueue: queue}, climb); err != nil {
			return err
		}
	}
	took := time.Since(begin)
	if err := allHalfWay(ctx, e.Client(), climbers); err != nil {
		return err
	}
	fmt.Println("started in", took)
	<-ctx.Done()
	w.Stop()
	return e.Stop(context.Background())
}

// allHalfWay returns when every climber's activity has sent its heartbeat.
func allHalfWay(ctx context.Context, c client.Client, climbers int) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for i := 0; i < climbers; {
		description, err := c.DescribeWorkflowExecution(ctx, fmt.Sprintf("climb-%d", i), "")
		if err != nil {
			return err
		}
		if pending := description.GetPendingActivities(); len(pending) == 1 && pending[0].GetHeartbeatDetails() != nil {
			i++
		}
	}
	return nil
}

// startChild returns when the child says that it started.
func startChild(t *testing.T, dir string, env ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(append(os.Environ(), childDir+"="+dir), env...)
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil && err != io.EOF {
		t.Fatal(err)
	}
	if !strings.HasPrefix(line, "started") {
		t.Fatalf("the child did not start: %q", line)
	}
	t.Log("child " + strings.TrimSpace(line))
	return cmd
}

func TestActivitiesOfAKilledServerAreRetriedAtOnce(t *testing.T) {
	dir := t.TempDir()
	const climbers = 5
	killed := startChild(t, dir, fmt.Sprintf("%s=%d", childClimbers, climbers))
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = killed.Wait()

	begin := time.Now()
	e := start(t, engine.Config{DataDir: dir})
	defer work(t, e)()
	for i := range climbers {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		var got string
		if err := e.Client().GetWorkflow(ctx, fmt.Sprintf("climb-%d", i), "").Get(ctx, &got); err != nil {
			t.Fatalf("climb-%d: %v", i, err)
		}
		if got != "attempt 2 from half way" {
			t.Errorf("climb-%d: got %q", i, got)
		}
	}
	t.Logf("all %d done %s after the new server began to start", climbers, time.Since(begin))
}
