package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/hykube/hykube/server/engine"
)

const queue = "test"

// start runs an engine until the test ends or stops it.
func start(t *testing.T, config engine.Config) *engine.Engine {
	t.Helper()
	config.Logger = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: logLevel()}))
	e, err := engine.New(config)
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if err := e.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("engine started in %s", time.Since(begin))
	t.Cleanup(func() { stop(t, e) })
	return e
}

func logLevel() slog.Level {
	if os.Getenv("ENGINE_TEST_DEBUG") != "" {
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

func stop(t *testing.T, e *engine.Engine) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 5*time.Second)
	defer cancel()
	begin := time.Now()
	if err := e.Stop(ctx); err != nil {
		t.Errorf("stop: %v", err)
	}
	if took := time.Since(begin); took > 10*time.Millisecond {
		t.Logf("engine stopped in %s", took)
	}
}

// work registers the workflows of these tests and polls until the returned function is called.
func work(t *testing.T, e *engine.Engine) (stop func()) {
	t.Helper()
	w := worker.New(e.Client(), queue, worker.Options{WorkerStopTimeout: time.Second})
	w.RegisterWorkflow(greet)
	w.RegisterWorkflow(wait)
	w.RegisterWorkflow(climb)
	w.RegisterActivity(hello)
	w.RegisterActivity(step)
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	return w.Stop
}

func greet(ctx workflow.Context, name string) (greeting string, err error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Minute,
		RetryPolicy:         &temporal.RetryPolicy{MaximumAttempts: 2},
	})
	err = workflow.ExecuteActivity(ctx, hello, name).Get(ctx, &greeting)
	return greeting, err
}

func hello(_ context.Context, name string) (string, error) { return "hello " + name, nil }

func wait(ctx workflow.Context) (word string, err error) {
	workflow.GetSignalChannel(ctx, "word").Receive(ctx, &word)
	return word, nil
}

// climb has an activity that only ends when it was begun a second time.
func climb(ctx workflow.Context) (how string, err error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: 10 * time.Minute,
		HeartbeatTimeout:    5 * time.Minute,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: time.Minute},
	})
	err = workflow.ExecuteActivity(ctx, step).Get(ctx, &how)
	return how, err
}

func step(ctx context.Context) (string, error) {
	if activity.HasHeartbeatDetails(ctx) {
		var at string
		err := activity.GetHeartbeatDetails(ctx, &at)
		return fmt.Sprintf("attempt %d from %s", activity.GetInfo(ctx).Attempt, at), err
	}
	activity.RecordHeartbeat(ctx, "half way")
	<-ctx.Done()
	return "", ctx.Err()
}

func run(t *testing.T, c client.Client, id string, fn any, args ...any) client.WorkflowRun {
	t.Helper()
	r, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: queue}, fn, args...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestEngine(t *testing.T) {
	dir := t.TempDir()
	openBefore, goroutinesBefore := listening(t), len(temporalGoroutines()) // of other tests
	e := start(t, engine.Config{DataDir: dir})
	if err := e.Healthy(); err != nil {
		t.Errorf("healthy: %v", err)
	}
	stopWork := work(t, e)

	t.Run("runs a workflow with an activity", func(t *testing.T) {
		var got string
		begin := time.Now()
		if err := run(t, e.Client(), "greet", greet, "world").Get(t.Context(), &got); err != nil || got != "hello world" {
			t.Errorf("got %q, %v", got, err)
		}
		t.Logf("workflow with one activity took %s", time.Since(begin))
		begin = time.Now()
		for i := range 20 {
			if err := run(t, e.Client(), fmt.Sprintf("greet-%d", i), greet, "world").Get(t.Context(), &got); err != nil {
				t.Error(err)
			}
		}
		t.Logf("20 more took %s each", time.Since(begin)/20)
	})

	t.Run("finds workflows by their search attributes", func(t *testing.T) {
		r, err := e.Client().ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "attributed", TaskQueue: queue,
			TypedSearchAttributes: temporal.NewSearchAttributes(
				temporal.NewSearchAttributeKeyKeyword("HykubePlan").ValueSet("first"),
				temporal.NewSearchAttributeKeyKeyword("HykubeNamespace").ValueSet("default"),
				temporal.NewSearchAttributeKeyKeywordList("HykubeProvider").ValueSet([]string{"time", "sim"}),
				temporal.NewSearchAttributeKeyKeyword("HykubeOutcome").ValueSet("Applied"),
			)}, greet, "you")
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Get(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		const query = `HykubePlan = "first" AND HykubeProvider = "sim" AND HykubeNamespace = "default" AND HykubeOutcome = "Applied" AND ExecutionStatus = "Completed"`
		eventually(t, "the workflow in the list", func() error {
			list, err := e.Client().ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{Query: query})
			if err != nil {
				return err
			}
			if len(list.GetExecutions()) != 1 {
				return fmt.Errorf("found %d", len(list.GetExecutions()))
			}
			return nil
		})
	})

	t.Run("runs schedules without a worker service", func(t *testing.T) {
		_, err := e.Client().ScheduleClient().Create(t.Context(), client.ScheduleOptions{
			ID:                 "drift",
			Spec:               client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: time.Hour}}},
			Action:             &client.ScheduleWorkflowAction{ID: "drift", Workflow: greet, Args: []any{"you"}, TaskQueue: queue},
			TriggerImmediately: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "a run of the schedule", func() error {
			list, err := e.Client().ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{
				Query: `WorkflowId STARTS_WITH "drift-" AND ExecutionStatus = "Completed"`})
			if err == nil && len(list.GetExecutions()) == 0 {
				err = errors.New("none yet")
			}
			return err
		})
	})

	t.Run("listens on loopback only", func(t *testing.T) {
		ports := listening(t)
		if len(ports) == 0 {
			t.Fatal("no listening port found")
		}
		for _, address := range ports {
			host, _, _ := net.SplitHostPort(address)
			if !net.ParseIP(host).IsLoopback() {
				t.Errorf("listens on %s", address)
			}
		}
		t.Log(ports)
	})

	t.Run("keeps a waiting workflow over a restart, and leaves nothing behind", func(t *testing.T) {
		run(t, e.Client(), "waiting", wait)
		ports := slices.DeleteFunc(listening(t), func(a string) bool { return slices.Contains(openBefore, a) })
		stopWork()
		stop(t, e)
		for _, address := range ports {
			if c, err := net.DialTimeout("tcp", address, time.Second); err == nil {
				_ = c.Close()
				t.Errorf("%s still listens", address)
			}
		}
		if err := e.Healthy(); err == nil {
			t.Error("a stopped engine says that it is healthy")
		}
		eventually(t, "no goroutine of the server", func() error {
			if left := temporalGoroutines(); len(left) > goroutinesBefore {
				return fmt.Errorf("%d are left, such as\n%s", len(left)-goroutinesBefore, strings.Join(left[:min(len(left), 6)], "\n\n"))
			}
			return nil
		})

		again := start(t, engine.Config{DataDir: dir})
		defer work(t, again)()
		if err := again.Client().SignalWorkflow(t.Context(), "waiting", "", "word", "back"); err != nil {
			t.Fatal(err)
		}
		var got string
		if err := again.Client().GetWorkflow(t.Context(), "waiting", "").Get(t.Context(), &got); err != nil || got != "back" {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

// eventually polls until probe is content.
func eventually(t *testing.T, what string, probe func() error) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	err := errors.New("never asked")
	for time.Now().Before(deadline) {
		if err = probe(); err == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s: %v", what, err)
}
