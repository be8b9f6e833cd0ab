package e2e

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/sdk/steps"
	"github.com/hykube/hykube/tests/harness"
)

// stepsResult is what the workflow of TestSteps found.
type stepsResult struct {
	Drift   steps.DriftResult
	Outputs steps.OutputsResult
	Plan    steps.PlanResult
	After   string
}

// useSteps is a workflow with the steps that the example does not use.
func useSteps(ctx workflow.Context) (out stepsResult, err error) {
	if out.Drift, err = steps.Drift(ctx, steps.DriftOptions{}); err != nil {
		return out, err
	}
	if out.Outputs, err = steps.Outputs(ctx, steps.OutputsOptions{Expressions: map[string]string{
		"name": "${sim_network.main.name}", "list": `[for n in ["a", "b"] : "$${${n}} %%{x}"]`, "secret": "sim_password.db.result", "unknown": "sim_network.later.id",
	}}); err != nil {
		return out, err
	}
	if out.Plan, err = steps.Plan(ctx, steps.PlanOptions{Spec: v1alpha1.PlanSpec{Targets: []string{"sim_network.later"}}}); err != nil {
		return out, err
	}
	for range 2 { // a second time, as after a crash
		if err := steps.Discard(ctx, steps.DiscardOptions{Plan: out.Plan.PlanRef, Message: "only a test"}); err != nil {
			return out, err
		}
	}
	_, err = steps.Apply(ctx, steps.ApplyOptions{Plan: out.Plan.PlanRef, Approve: true})
	if steps.Is(err, steps.Discarded) {
		out.After, err = steps.Discarded, nil
	}
	return out, err
}

// TestSteps runs the other steps on a server.
func TestSteps(t *testing.T) {
	t.Parallel()
	const namespace = "story-steps"
	newNamespace(t, namespace)
	objects := strings.ReplaceAll(strings.ReplaceAll(estate, "story-webui", namespace), "webui-", "steps-")
	kubectlWith(t, objects, "hykube", "apply", "--auto-approve", "-f", "-")
	kubectlWith(t, `{"apiVersion":"sim.hykube.io/v1","kind":"sim-network","metadata":{"name":"later"},"spec":{"name":"steps-later"}}`, "create", "-n", namespace, "-f", "-")
	if _, err := cloud.Drift(t.Context(), "network", "steps-main", map[string]any{"tags": map[string]string{"team": "other"}}); err != nil {
		t.Fatal(err)
	}
	config, err := shared.Config()
	if err != nil {
		t.Fatal(err)
	}
	c := temporalClient(t, namespace, nil)
	activities, err := steps.New(config, namespace)
	if err != nil {
		t.Fatal(err)
	}
	w := worker.New(c, "steps", worker.Options{})
	w.RegisterWorkflow(useSteps)
	w.RegisterWorkflow(waitWithSteps)
	activities.Register(w)
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)

	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: "steps", TaskQueue: "steps"}, useSteps)
	if err != nil {
		t.Fatal(err)
	}
	var got stepsResult
	if err := run.Get(ctx, &got); err != nil {
		t.Fatal(err)
	}
	if got.Drift.Drifted != 1 || !slices.Equal(got.Drift.Addresses, []string{"sim_network.main"}) {
		t.Errorf("drift: %+v, want sim_network.main", got.Drift)
	}
	if v := got.Outputs.Values; v["name"] != `"steps-main"` || v["list"] != `["${a} %{x}","${b} %{x}"]` || len(v) != 2 {
		t.Errorf("values: %v", v)
	}
	if !slices.Equal(got.Outputs.Sensitive, []string{"secret"}) || !slices.Equal(got.Outputs.Unknown, []string{"unknown"}) {
		t.Errorf("sensitive %v, unknown %v", got.Outputs.Sensitive, got.Outputs.Unknown)
	}
	if got.After != steps.Discarded || got.Plan.Summary.Create != 1 {
		t.Errorf("the discarded plan: %+v, then %q", got.Plan, got.After)
	}
	if plans := plansOfWorkflow(t, namespace, "steps"); len(plans) != 1 || plans[0].Name != got.Plan.Name {
		t.Errorf("%d plans are left, want the discarded one and not that of the drift", len(plans))
	}

	// Each step that waits sees the end of its wait in its first attempt, when a person approves the plan meanwhile.
	run, err = c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: "waits", TaskQueue: "steps"}, waitWithSteps)
	if err != nil {
		t.Fatal(err)
	}
	awaitStep(t, c, "waits", "hykube.AwaitApproval")
	waiting := plansOfWorkflow(t, namespace, "waits")[0].Name
	kubectl(t, "hykube", "approve", waiting, "-n", namespace, "--digest", digestOf(t, waiting, namespace))
	if err := run.Get(ctx, nil); err != nil {
		t.Fatal(err)
	}
	if got := attempts(t, c, "waits"); len(got) != 4 {
		t.Errorf("attempts of the steps: %v, want those of four steps", got)
	} else {
		for step, attempt := range got {
			if attempt != 1 {
				t.Errorf("%s ended in attempt %d, want the first", step, attempt)
			}
		}
	}
	kubectl(t, "hykube", "destroy", "--all", "-n", namespace, "--auto-approve")
}

// waitWithSteps is a workflow with the steps that wait. AwaitReady waits during all others.
func waitWithSteps(ctx workflow.Context) error {
	ready, done := workflow.NewFuture(ctx)
	workflow.Go(ctx, func(ctx workflow.Context) {
		network := steps.ObjectRef{APIVersion: "sim.hykube.io/v1", Kind: "sim-network", Name: "later"}
		done.Set(nil, steps.AwaitReady(ctx, steps.AwaitReadyOptions{Object: network}))
	})
	plan, err := steps.Plan(ctx, steps.PlanOptions{Spec: v1alpha1.PlanSpec{Targets: []string{"sim_network.later"}}})
	if err != nil {
		return err
	}
	if _, err := steps.AwaitApproval(ctx, steps.AwaitApprovalOptions{Plan: plan.PlanRef}); err != nil {
		return err
	}
	if _, err := steps.Apply(ctx, steps.ApplyOptions{Plan: plan.PlanRef}); err != nil {
		return err
	}
	return ready.Get(ctx, nil)
}

// quickSteps is a workflow with steps that end at once.
func quickSteps(ctx workflow.Context) error {
	for range 30 {
		if err := steps.Discard(ctx, steps.DiscardOptions{Plan: steps.PlanRef{Namespace: "story-quick-steps", Name: "none"}}); err != nil {
			return err
		}
	}
	return nil
}

// TestQuickStepsLogNothing runs steps that end while their first heartbeat is under way. The log of a worker has no
// warning about that.
func TestQuickStepsLogNothing(t *testing.T) {
	t.Parallel()
	const namespace = "story-quick-steps"
	kubectl(t, "create", "namespace", namespace)
	config, err := shared.Config()
	if err != nil {
		t.Fatal(err)
	}
	var written lockedLog
	c := temporalClient(t, namespace, log.NewStructuredLogger(slog.New(slog.NewTextHandler(&written, &slog.HandlerOptions{Level: slog.LevelWarn}))))
	activities, err := steps.New(config, namespace)
	if err != nil {
		t.Fatal(err)
	}
	w := worker.New(c, "quick", worker.Options{})
	w.RegisterWorkflow(quickSteps)
	activities.Register(w)
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: "quick", TaskQueue: "quick"}, quickSteps)
	if err == nil {
		err = run.Get(ctx, nil)
	}
	w.Stop()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(written.text.String()) {
		if !strings.Contains(line, "worker stopping") { // the end of a poll, which is no step
			t.Errorf("the worker logged %.1500s", line)
		}
	}
}

// temporalClient returns a client of the Temporal namespace of a Kubernetes namespace, with the administrator's rights. A nil
// logger means the default one.
func temporalClient(t *testing.T, namespace string, logger log.Logger) client.Client {
	t.Helper()
	config, err := shared.Config()
	if err != nil {
		t.Fatal(err)
	}
	options, err := steps.ConnectOptions(config, namespace)
	if err != nil {
		t.Fatal(err)
	}
	if logger != nil {
		options.Logger = logger
	}
	c, err := client.DialContext(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// awaitStep waits until an activity of a workflow runs.
func awaitStep(t *testing.T, c client.Client, id, step string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := harness.Poll(ctx, 50*time.Millisecond, func() error {
		run, err := c.DescribeWorkflowExecution(ctx, id, "")
		if err != nil {
			return err
		}
		for _, a := range run.GetPendingActivities() {
			if a.GetActivityType().GetName() == step && a.GetState() == enums.PENDING_ACTIVITY_STATE_STARTED {
				return nil
			}
		}
		return errNotYet
	})
	if err != nil {
		t.Fatalf("wait until workflow %s runs %s: %v", id, step, err)
	}
}

// attempts returns the number of the last attempt of each activity of a workflow that has ended.
func attempts(t *testing.T, c client.Client, id string) map[string]int32 {
	t.Helper()
	scheduled, last := map[int64]string{}, map[string]int32{}
	for events := c.GetWorkflowHistory(t.Context(), id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); events.HasNext(); {
		e, err := events.Next()
		if err != nil {
			t.Fatal(err)
		}
		if a := e.GetActivityTaskScheduledEventAttributes(); a != nil {
			scheduled[e.GetEventId()] = a.GetActivityType().GetName()
		}
		if a := e.GetActivityTaskStartedEventAttributes(); a != nil {
			last[scheduled[a.GetScheduledEventId()]] = a.GetAttempt()
		}
	}
	return last
}
