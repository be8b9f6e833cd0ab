package main

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/sdk/steps"
)

const (
	// taskQueue is the queue of the worker.
	taskQueue = "bluegreen"
	// decisionSignal is the signal of a person, with "promote" or "rollback".
	decisionSignal = "decision"
	promote        = "promote"
	rollback       = "rollback"
)

// Rollout is the input of the workflow. It replaces the servers of one set with those of another.
type Rollout struct {
	// New and Old are the names of the sets: blue and green. Without Old, there is no set to destroy.
	New string `json:"new"`
	Old string `json:"old,omitempty"`
	// Waves are the numbers of servers after each wave, such as [1, 4].
	Waves []int64 `json:"waves"`
	// Image of the new servers, and the subnet that they are in.
	Image  string `json:"image"`
	Subnet string `json:"subnet"`
	// Record is the name of the sim-dns-record that points to the servers.
	Record string `json:"record"`
	// Approve is true if the worker approves the plans itself. Otherwise each waits for a person.
	Approve bool `json:"approve,omitempty"`
	// Soak is the time after which the old set is destroyed without a decision of a person; 0 means never.
	Soak time.Duration `json:"soak,omitempty"`
	// Heartbeat is the time after which Temporal takes a silent worker for lost; 0 means one minute.
	Heartbeat time.Duration `json:"heartbeat,omitempty"`
}

// Result describes the state after the rollout.
type Result struct {
	// Serving is the set that the DNS record points to.
	Serving string   `json:"serving"`
	Plans   []string `json:"plans"`
}

// BlueGreen makes a new set in waves, checks it, moves the DNS record, waits, and destroys the old set. If a step fails
// before the decision, or a person decides so, it reverts its earlier steps.
func BlueGreen(ctx workflow.Context, in Rollout) (Result, error) {
	if in.New == "" || in.New == in.Old || len(in.Waves) == 0 {
		return Result{}, temporal.NewNonRetryableApplicationError("the rollout needs a new set that is not the old one, and waves", steps.Invalid, nil)
	}
	r := &rollout{in: in, options: steps.StepOptions{HeartbeatTimeout: in.Heartbeat}}
	if err := r.forward(ctx); err != nil {
		// A cancelled workflow reverts its earlier steps, too. For that it needs a context that is not cancelled.
		ctx, _ := workflow.NewDisconnectedContext(ctx)
		workflow.SetCurrentDetails(ctx, fmt.Sprintf("Takes the rollout of %s back: %v", in.New, err))
		if undo := r.back(ctx); undo != nil {
			return Result{}, errors.Join(err, fmt.Errorf("take the rollout back: %w", undo))
		}
		return Result{}, err
	}
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("%s serves. Destroys %s.", in.New, in.Old))
	if err := r.destroy(ctx, in.Old); err != nil { // the new set serves, so this is no reason to go back
		return Result{}, err
	}
	return Result{Serving: in.New, Plans: r.plans}, nil
}

// rollout is the state of one run.
type rollout struct {
	in      Rollout
	options steps.StepOptions
	plans   []string
	// The steps to revert after a failure.
	recorded, moved bool
}

// forward does the steps until the decision. It returns an error if the workflow must revert them.
func (r *rollout) forward(ctx workflow.Context) error {
	for i, count := range r.in.Waves {
		workflow.SetCurrentDetails(ctx, fmt.Sprintf("Wave %d of %d: %d servers of %s.", i+1, len(r.in.Waves), count, r.in.New))
		r.recorded = true
		if _, err := steps.Record(ctx, steps.RecordOptions{StepOptions: r.options, Objects: []unstructured.Unstructured{r.set(count)}, Force: true}); err != nil {
			return err
		}
		if err := r.change(ctx, "sim_instance."+r.in.New); err != nil {
			return err
		}
		ready := steps.AwaitReadyOptions{StepOptions: r.options, Object: setRef(r.in.New)}
		ready.Timeout = 10 * time.Minute
		if err := steps.AwaitReady(ctx, ready); err != nil {
			return err
		}
		if err := r.healthy(ctx, count); err != nil {
			return err
		}
	}
	r.moved = true
	if err := r.point(ctx, r.in.New); err != nil {
		return err
	}
	return r.decision(ctx)
}

// healthy checks that each server has an address. Replace it with an activity that asks the servers themselves.
func (r *rollout) healthy(ctx workflow.Context, count int64) error {
	out, err := steps.Outputs(ctx, steps.OutputsOptions{StepOptions: r.options, Expressions: map[string]string{
		"addresses": fmt.Sprintf("length([for i in sim_instance.%s : i.private_ip if i.private_ip != null])", r.in.New),
	}})
	if err != nil {
		return err
	}
	if got := out.Values["addresses"]; got != fmt.Sprint(count) {
		return temporal.NewNonRetryableApplicationError(fmt.Sprintf("%s of %d servers of %s have an address", got, count, r.in.New), "Unhealthy", nil)
	}
	return nil
}

// decision waits for a person, or for the end of the soak time.
func (r *rollout) decision(ctx workflow.Context) error {
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("%s serves, %s is kept. Waits for the signal %q with %q or %q.", r.in.New, r.in.Old, decisionSignal, promote, rollback))
	var word string
	waiting := workflow.NewSelector(ctx)
	waiting.AddReceive(workflow.GetSignalChannel(ctx, decisionSignal), func(c workflow.ReceiveChannel, _ bool) { c.Receive(ctx, &word) })
	waiting.AddReceive(ctx.Done(), func(workflow.ReceiveChannel, bool) {})
	if r.in.Soak > 0 {
		waiting.AddFuture(workflow.NewTimer(ctx, r.in.Soak), func(workflow.Future) { word = promote })
	}
	waiting.Select(ctx)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case word == promote:
		return nil
	}
	return temporal.NewNonRetryableApplicationError(fmt.Sprintf("a person decided %q", word), "RolledBack", nil)
}

// back reverts the steps of forward: the DNS record points to the old set again, and the new set is destroyed.
func (r *rollout) back(ctx workflow.Context) error {
	var err error
	switch {
	case r.moved && r.in.Old != "":
		err = r.point(ctx, r.in.Old)
	case r.moved:
		err = r.remove(ctx, steps.ObjectRef{APIVersion: "sim.hykube.io/v1", Kind: "sim-dns-record", Name: r.in.Record}, "sim_dns_record."+r.in.Record)
	}
	if err != nil || !r.recorded {
		return err
	}
	return r.destroy(ctx, r.in.New)
}

// point lets the DNS record point to a set.
func (r *rollout) point(ctx workflow.Context, set string) error {
	record := unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "sim.hykube.io/v1", "kind": "sim-dns-record", "metadata": map[string]any{"name": r.in.Record},
		"spec": map[string]any{"name": r.in.Record, "type": "A", "values": fmt.Sprintf("${sim_instance.%s[*].private_ip}", set)},
	}}
	if _, err := steps.Record(ctx, steps.RecordOptions{StepOptions: r.options, Objects: []unstructured.Unstructured{record}, Force: true}); err != nil {
		return err
	}
	return r.change(ctx, "sim_dns_record."+r.in.Record)
}

// destroy destroys a set and its servers.
func (r *rollout) destroy(ctx workflow.Context, set string) error {
	if set == "" {
		return nil
	}
	return r.remove(ctx, setRef(set), "sim_instance."+set)
}

// remove deletes an object, and destroys its infrastructure if it has any.
func (r *rollout) remove(ctx workflow.Context, object steps.ObjectRef, address string) error {
	deleted, err := steps.Record(ctx, steps.RecordOptions{StepOptions: r.options, Delete: []steps.ObjectRef{object}})
	if err != nil || len(deleted.Remaining) == 0 {
		return err
	}
	return r.change(ctx, address)
}

// change plans a target and applies the plan after its approval. A plan that became stale is made again. The plan of a
// change that fails is discarded.
func (r *rollout) change(ctx workflow.Context, target string) error {
	for {
		plan, err := steps.Plan(ctx, steps.PlanOptions{StepOptions: r.options, Spec: v1alpha1.PlanSpec{Targets: []string{target}}})
		if plan.Name != "" {
			r.plans = append(r.plans, plan.Name)
		}
		if err == nil && !plan.NoChanges && !r.in.Approve {
			_, err = steps.AwaitApproval(ctx, steps.AwaitApprovalOptions{StepOptions: r.options, Plan: plan.PlanRef})
		}
		if err == nil {
			_, err = steps.Apply(ctx, steps.ApplyOptions{StepOptions: r.options, Plan: plan.PlanRef, Approve: r.in.Approve, Message: "rollout of " + r.in.New})
		}
		if err == nil {
			return nil
		}
		if !steps.Is(err, steps.Stale) && !steps.Is(err, steps.Superseded) {
			return r.discard(ctx, plan.PlanRef, err)
		}
	}
}

// discard discards the plan of a change that failed, so that no user approves it later. It returns the error of the
// change. If the worker's user may not discard the plan, the error says that the plan waits, and how to discard it.
func (r *rollout) discard(ctx workflow.Context, plan steps.PlanRef, failed error) error {
	if plan.Name == "" || steps.Is(failed, steps.PlanFailed) { // no plan that a user could approve
		return failed
	}
	ctx, _ = workflow.NewDisconnectedContext(ctx) // of a cancelled workflow, too
	err := steps.Discard(ctx, steps.DiscardOptions{StepOptions: r.options, Plan: plan, Message: "the rollout of " + r.in.New + " failed"})
	if err == nil || steps.Is(err, steps.Approved) {
		return failed
	}
	why := err.Error()
	if steps.Is(err, steps.Forbidden) {
		why = "the worker's user may not discard it"
	}
	return fmt.Errorf("%w; plan %q still waits for a decision: %s. As a user who may approve plans: kubectl hykube discard %s -n %s",
		failed, plan, why, plan.Name, plan.Namespace)
}

func setRef(name string) steps.ObjectRef {
	return steps.ObjectRef{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "ResourceSet", Name: name}
}

// set returns the new set with a number of servers.
func (r *rollout) set(count int64) unstructured.Unstructured {
	return unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": "ResourceSet", "metadata": map[string]any{"name": r.in.New},
		"spec": map[string]any{"count": count, "template": map[string]any{
			"apiVersion": "sim.hykube.io/v1", "kind": "sim-instance", "metadata": map[string]any{"name": r.in.New},
			"spec": map[string]any{
				"name": r.in.New + "-${count.index}", "image": r.in.Image, "cpu": int64(1), "subnet_id": "${sim_subnet." + r.in.Subnet + ".id}",
			},
		}},
	}}
}
