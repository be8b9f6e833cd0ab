package controller

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/sdk/steps"
	"github.com/hykube/hykube/server/engine"
	"github.com/hykube/hykube/server/starter"
)

// temporalStacks returns the controller of stacks on a Temporal server, and a client for the workflows of the namespace
// prod.
func temporalStacks(t *testing.T) (*Stacks, client.Client) {
	t.Helper()
	e, err := engine.New(engine.Config{DataDir: t.TempDir(), NamespaceOwner: func(name string) (string, bool) { return "uid-1", name == "prod" }})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := e.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	users := e.Users()
	if _, err := users.Prepare(t.Context(), "prod"); err != nil {
		t.Fatal(err)
	}
	c, err := client.NewClientFromExisting(e.Client(), client.Options{Namespace: "hykube.prod", Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	if err != nil {
		t.Fatal(err)
	}
	return restarted(&UserRuns{Service: users.Service(), Prepare: users.Prepare, Room: users.Room, Key: testKey, Stamps: starter.Signer{Key: testKey}}), c
}

func testKey(context.Context) ([]byte, error) { return []byte("key"), nil }

// restarted returns the controller of stacks that knows nothing yet, as after a start of the server.
func restarted(runs *UserRuns) *Stacks {
	stacks := NewStacks(StacksConfig{Runs: runs, Logger: slog.New(slog.DiscardHandler)})
	stacks.plans = &Plans{informer: cache.NewSharedIndexInformer(&cache.ListWatch{}, &v1alpha1.Plan{}, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})}
	return stacks
}

// laterQueue is the task queue of a release that continued as new.
const laterQueue = "release-later"

// release is a workflow that ends as its input says.
func release(ctx workflow.Context, in steps.StackInput) error {
	var input struct{ End string }
	if err := in.Decode(&input); err != nil {
		return err
	}
	switch input.End {
	case "again":
		in.Input = []byte(`{"End":"later"}`)
		return workflow.NewContinueAsNewError(workflow.WithWorkflowTaskQueue(ctx, laterQueue), release, in)
	case "later":
		return workflow.Sleep(ctx, time.Hour)
	case "fail":
		return temporal.NewApplicationError("no "+strings.Repeat("money ", 1000), "Poor")
	}
	return nil
}

// startWorker starts a worker of releases on a task queue.
func startWorker(t *testing.T, flows client.Client, queue string) {
	t.Helper()
	w := worker.New(flows, queue, worker.Options{})
	w.RegisterWorkflowWithOptions(release, workflow.RegisterOptions{Name: "Release"})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
}

// edited returns a stack with a workflow whose argument says how it ends.
func edited(end string) *stackState {
	return stackWith(withWorkflow, func(s *stackState) {
		s.stack.Spec.Workflow.Input = &runtime.RawExtension{Raw: []byte(`{"End":"` + end + `"}`)}
	})
}

func startOf(t *testing.T, c *Stacks, s *stackState) stackStep {
	t.Helper()
	step := s.decide()
	if !step.make {
		t.Fatalf("the stack starts nothing: %+v", step)
	}
	if err := c.startRun(t.Context(), s, &step, []*v1alpha1.Stack{s.stack}); err != nil {
		t.Fatal(err)
	}
	return step
}

// untilRun reads the run of a stack until a condition holds.
func untilRun(t *testing.T, c *Stacks, s *stackState, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if err := c.refreshRun(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if done() {
			return
		}
	}
	t.Fatalf("not within 20 s: %s: %+v", what, s.run)
}

// TestRunsOfStacks starts and follows workflows of stacks on a Temporal server.
func TestRunsOfStacks(t *testing.T) {
	c, flows := temporalStacks(t)
	first := edited("again")
	if step := startOf(t, c, first); step.reason != v1alpha1.ReasonWorkflowRunning || step.make || step.after != workerGrace {
		t.Errorf("after the start: %+v", step)
	}
	begun := first.run.RunID

	// The server dies before it writes the status. The next one finds the run, and starts no other.
	for why, change := range map[string]func(*stackState){
		"the same":               func(*stackState) {},
		"an edit since":          func(s *stackState) { s.selected.Contents = "newer" },
		"another input since":    func(s *stackState) { s.stack.Generation, s.stack.Spec.Workflow.Input = 2, nil },
		"the cache has the last": func(s *stackState) { s.run = &stackRun{}; s.run.EndedAt = &s.run.StartedAt },
	} {
		lost := edited("again")
		change(lost)
		if startOf(t, restarted(c.Runs), lost); lost.run.RunID != begun || lost.run.Number != 1 || lost.run.Contents != "new" || lost.run.StackGeneration != 1 {
			t.Errorf("%s: %+v, want the run %s", why, lost.run, begun)
		}
	}
	if again, err := c.Runs.Start(t.Context(), first.stack, first.run.RunOrigin, first.spec); err != nil || again.RunID != begun {
		t.Errorf("the answer to a start was lost: %+v, %v, want the run %s", again, err, begun)
	}

	// No worker polls. The condition says so after a grace time.
	first.now = time.Now()
	untilRun(t, c, first, "the run waits", func() bool { return first.run.again > 0 && first.run.again <= workerGrace })
	if first.run.idle {
		t.Error("the run has no worker before the grace time")
	}
	first.now = time.Now().Add(workerGrace)
	untilRun(t, c, first, "the worker is missing", func() bool { return first.run.idle })
	if step := first.decide(); step.reason != v1alpha1.ReasonAwaitingWorker || !strings.Contains(step.message, `"release"`) {
		t.Errorf("without a worker: %+v", step)
	}

	startWorker(t, flows, "release")

	// The run continues as new. It stays the run of the stack, and another stack of the name does not take it.
	untilRun(t, c, first, "the run continues as new", func() bool { return first.run.RunID != begun })
	for by, want := range map[string]string{first.run.RunID: begun, begun: begun, "6b3b52f6-7b5b-4b1f-8a3e-000000000000": "", "no ID": "", "": ""} {
		if got, err := c.Runs.First(t.Context(), "prod", "stack.web", by); err != nil || got != want {
			t.Errorf("the first run of %q: %q, %v, want %q", by, got, err, want)
		}
	}
	if !first.run.running() || first.run.Number != 1 || first.run.idle {
		t.Errorf("after it continued as new: %+v", first.run)
	}
	other := edited("")
	other.stack.UID = "other"
	if step := startOf(t, c, other); other.run != nil || step.after != runRetry || !strings.Contains(step.message, "did not start workflow stack.web") {
		t.Errorf("a stack of the same name: %+v, %+v", step, other.run)
	}
	startWorker(t, flows, laterQueue) // only now, so the history of the run did not show that its workflow has begun
	untilRun(t, c, first, "the run of the deleted stack ends", func() bool { return !first.run.running() })
	if step := first.decide(); first.run.Outcome != v1alpha1.RunCancelled || step.reason != v1alpha1.ReasonCancelled {
		t.Errorf("the run of a deleted stack: %+v, %+v", first.run, step)
	}
	// It was cancelled and not terminated, so it could undo what it had done.
	if ended, err := flows.DescribeWorkflowExecution(t.Context(), "stack.web", first.run.RunID); err != nil || ended.GetWorkflowExecutionInfo().GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED {
		t.Errorf("the workflow of a deleted stack: %v, %v", ended.GetWorkflowExecutionInfo().GetStatus(), err)
	}

	// A failure has a message of bounded length.
	failing := edited("fail")
	failing.stack.UID = "failing"
	startOf(t, c, failing)
	if err := c.Runs.Await(t.Context(), "prod", "stack.web", failing.run.RunID); err != nil {
		t.Fatal(err)
	}
	untilRun(t, c, failing, "the run failed", func() bool { return !failing.run.running() })
	if r := failing.run; r.Outcome != v1alpha1.RunFailed || !strings.HasPrefix(r.Message, "no money") || len(r.Message) != maxFailure {
		t.Errorf("a failure: %s, %d bytes, %.20s", r.Outcome, len(r.Message), r.Message)
	}

	// The next one has the next number.
	earlier := failing.run.RunID
	failing.selected.Contents = "newer"
	startOf(t, c, failing)
	if failing.run.Number != 2 {
		t.Errorf("the next run has the number %d", failing.run.Number)
	}
	// A plan of the earlier run is none of the next one, although that may have started in the same second.
	for name, by := range map[string]string{"earlier": earlier, "own": failing.run.RunID} {
		po := &v1alpha1.Plan{}
		po.Namespace, po.Name, po.CreationTimestamp = "prod", name, metav1.NewTime(failing.run.StartedAt.Add(time.Second))
		po.Annotations = map[string]string{v1alpha1.AnnotationWorkflowNamespace: "hykube.prod", v1alpha1.AnnotationWorkflowID: "stack.web", v1alpha1.AnnotationWorkflowRunID: by}
		if err := c.plans.informer.GetIndexer().Add(po); err != nil {
			t.Fatal(err)
		}
	}
	runs := c.Runs
	for range 2 { // the second time without Temporal
		if err := c.findPlans(t.Context(), failing); err != nil || len(failing.run.plans) != 1 || failing.run.plans[0].Name != "own" {
			t.Errorf("the plans of the next run: %+v, %v", failing.run.plans, err)
		}
		c.Runs = &UserRuns{Service: noWorkflows{}, Prepare: runs.Prepare, Room: runs.Room, Key: runs.Key, Stamps: runs.Stamps}
	}
	c.Runs = runs

	// Temporal lost a run.
	gone := edited("")
	gone.run = &stackRun{}
	gone.run.WorkflowID, gone.run.RunID = "stack.web", "6b3b52f6-7b5b-4b1f-8a3e-000000000000"
	if err := c.refreshRun(t.Context(), gone); err != nil || gone.run.Outcome != v1alpha1.RunLost {
		t.Errorf("a run that Temporal does not have: %+v, %v", gone.run, err)
	}
}

// TestRunsOfDeletedStacks ends the workflows of stacks that were deleted while the server ran, and while it was down.
func TestRunsOfDeletedStacks(t *testing.T) {
	c, flows := temporalStacks(t)
	for _, name := range []string{"deleted", "missed", "kept"} {
		s := edited("later")
		s.stack.Name, s.stack.UID = name, types.UID(name)
		startOf(t, c, s)
		s.stack.Status.Run = &s.run.StackRun
		c.noteRun(s.stack)
		if name == "kept" {
			if err := c.informer.GetStore().Add(s.stack); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := flows.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "stack.mine", TaskQueue: "release"}, "Release", steps.StackInput{}); err != nil {
		t.Fatal(err)
	}
	ended := func(name string) bool {
		t.Helper()
		history := flows.GetWorkflowHistory(t.Context(), "stack."+name, "", false, 0)
		for history.HasNext() {
			e, err := history.Next()
			if err != nil {
				t.Fatal(err)
			}
			if e.GetWorkflowExecutionCancelRequestedEventAttributes() != nil || e.GetWorkflowExecutionTerminatedEventAttributes() != nil {
				return true
			}
		}
		return false
	}
	for _, name := range []string{"deleted", "kept"} {
		now := types.UID("")
		if name == "kept" {
			now = "kept"
		}
		if err := c.endDeleted(t.Context(), cache.NewObjectName("prod", name), now); err != nil {
			t.Fatal(err)
		}
	}
	if !ended("deleted") || ended("kept") || ended("missed") {
		t.Errorf("after a deletion: deleted %t, kept %t, missed %t", ended("deleted"), ended("kept"), ended("missed"))
	}
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end) && !ended("missed"); time.Sleep(100 * time.Millisecond) { // the list lags
		if err := c.endOrphanRuns(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if !ended("missed") || ended("kept") || ended("mine") {
		t.Errorf("after a start: missed %t, kept %t, of a user %t", ended("missed"), ended("kept"), ended("mine"))
	}
}

// TestRunsInAnOldCache writes the status from a cache that does not have the newest run.
func TestRunsInAnOldCache(t *testing.T) {
	old, status := stackWith(hasRun("new", v1alpha1.RunCompleted), asWritten), v1alpha1.StackStatus{}
	status.Run = &v1alpha1.StackRun{RunOrigin: v1alpha1.RunOrigin{Number: 2}}
	if old.write(&status, old.decide()); status.Run.Number != 2 {
		t.Errorf("the status forgot the run: %+v", status.Run)
	}
}

// TestForgedRuns starts workflows with the ID and the memo of a stack's run, as a user of the namespace can.
func TestForgedRuns(t *testing.T) {
	c, flows := temporalStacks(t)
	s := edited("")
	startOf(t, c, s)
	own := s.run.RunID
	known, err := c.Runs.Read(t.Context(), "prod", "stack.web", "")
	if err != nil || known.stack != s.stack.UID || known.RunID != own {
		t.Fatalf("the run of the stack: %+v, %v", known, err)
	}
	info, err := flows.DescribeWorkflowExecution(t.Context(), "stack.web", own)
	if err != nil {
		t.Fatal(err)
	}
	forge := func(note any) *userRun {
		t.Helper()
		_, err := flows.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
			ID: "stack.web", TaskQueue: "x", Memo: map[string]any{runMemo: note}, WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING,
		}, "Other")
		if err != nil {
			t.Fatal(err)
		}
		found, err := c.Runs.Read(t.Context(), "prod", "stack.web", "")
		if err != nil || found.RunID == own {
			t.Fatalf("the forged run: %+v, %v", found, err)
		}
		return found
	}
	note := runNote{Stack: s.stack.UID, RunOrigin: s.run.RunOrigin}
	note.Number, note.Signature = 1<<62, "00"
	if found := forge(note); found.stack != "" || found.Number != 0 || s.adopt(found) {
		t.Errorf("a run with another memo is that of the stack: %+v", found)
	}
	var copied map[string]any
	if err := converter.GetDefaultDataConverter().FromPayload(info.GetWorkflowExecutionInfo().GetMemo().GetFields()[runMemo], &copied); err != nil {
		t.Fatal(err)
	}
	if found := forge(copied); found.stack != s.stack.UID || s.adopt(found) {
		t.Errorf("a run with a copy of the memo is that of the stack: %+v", found)
	}
}

// TestCancelOfARun cancels a run before and after a worker began it. The second one left a plan that waits for an approval. The
// next run has made another one, of which the cache of stacks knows nothing yet.
func TestCancelOfARun(t *testing.T) {
	c, flows := temporalStacks(t)
	s := edited("")
	cancel := func(s *v1alpha1.Stack, want bool) {
		t.Helper()
		if found, err := c.CancelRun(t.Context(), s, "alice cancelled the run."); found != want || err != nil {
			t.Errorf("cancel of %s: %t, %v; want %t", s.UID, found, err, want)
		}
	}
	cancel(s.stack, false)
	startOf(t, c, s)
	s.stack.Status.Run = s.run.StackRun.DeepCopy()
	other := s.stack.DeepCopy()
	other.UID = "other" // an earlier stack of this name
	cancel(other, false)
	cancel(s.stack, true)
	untilRun(t, c, s, "the run ends", func() bool { return !s.run.running() })
	if s.run.Outcome != v1alpha1.RunCancelled || !strings.HasPrefix(s.run.Message, "alice cancelled the run.") {
		t.Errorf("the run: %+v", s.run)
	}
	cancel(s.stack, false)

	startWorker(t, flows, "release")
	begun := edited("later")
	begun.stack.Name = "begun"
	startOf(t, c, begun)
	begun.stack.Status.Run = begun.run.StackRun.DeepCopy()
	untilRun(t, c, begun, "a worker begins the run", func() bool {
		found, err := c.Runs.Read(t.Context(), "prod", "stack.begun", "")
		if err != nil {
			t.Fatal(err)
		}
		ok, err := c.Runs.begun(t.Context(), "prod", found)
		return ok && err == nil
	})
	plans := planMap{plans: map[string]*v1alpha1.Plan{}}
	c.plans.Status = plans
	makePlan := func(name, run string) {
		po := &v1alpha1.Plan{}
		po.Namespace, po.Name, po.UID, po.CreationTimestamp = "prod", name, types.UID(name), metav1.Now()
		po.Annotations = map[string]string{
			v1alpha1.AnnotationWorkflowNamespace: "hykube.prod", v1alpha1.AnnotationWorkflowID: "stack.begun", v1alpha1.AnnotationWorkflowRunID: run,
		}
		condition.Set(&po.Status.Conditions, 1, v1alpha1.ConditionPlanned, true, v1alpha1.ReasonPlanned, "")
		if err := c.plans.informer.GetIndexer().Add(po); err != nil {
			t.Fatal(err)
		}
		plans.plans[name] = po.DeepCopy()
	}
	makePlan("left", begun.run.RunID)
	cancel(begun.stack, true)
	untilRun(t, c, begun, "the run ends", func() bool { return !begun.run.running() })
	if begun.run.Outcome != v1alpha1.RunCancelled || begun.run.Message != "alice cancelled the run." {
		t.Errorf("the run: %+v", begun.run)
	}
	makePlan("next", "next")
	if err := c.readRun(t.Context(), begun); err != nil {
		t.Fatal(err)
	}
	if plans.plans["next"].Ended() {
		t.Errorf("the plan of the next run was discarded: %+v", plans.plans["next"].Status.Conditions)
	}
	if !plans.plans["left"].Ended() {
		t.Errorf("the plan of the run waits: %+v", plans.plans["left"].Status.Conditions)
	}
}

// TestTheSpecIsChangedBeforeAWorkerBegan mends a wrong task queue while no worker has the run.
func TestTheSpecIsChangedBeforeAWorkerBegan(t *testing.T) {
	c, _ := temporalStacks(t)
	s := edited("")
	startOf(t, c, s)
	s.now = time.Now().Add(workerGrace)
	untilRun(t, c, s, "the worker is missing", func() bool { return s.run.idle })
	s.stack.Generation++
	untilRun(t, c, s, "the run ends", func() bool { return !s.run.running() })
	if s.run.Outcome != v1alpha1.RunCancelled || !strings.Contains(s.run.Message, "No worker had begun the workflow.") {
		t.Errorf("the run: %+v", s.run)
	}
	if step := s.decide(); !step.make {
		t.Errorf("then: %+v, want the next run", step)
	}
}
