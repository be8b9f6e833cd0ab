package e2e

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/sdk/steps"
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
	options, err := steps.ConnectOptions(config, namespace)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.DialContext(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	activities, err := steps.New(config, namespace)
	if err != nil {
		t.Fatal(err)
	}
	w := worker.New(c, "steps", worker.Options{})
	w.RegisterWorkflow(useSteps)
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
	kubectl(t, "hykube", "destroy", "--all", "-n", namespace, "--auto-approve")
}
