package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// measureOne applies n resources that all refer to one. Then it measures plans after a change of one of them: of one to
// which none refers, and of the one that all others refer to, without a change of the value that they refer to. The
// time of such a plan should not depend on n. At last it destroys all. It compares that with the provider calls alone,
// and with Terraform or OpenTofu if one is on the machine.
func measureOne(ctx context.Context, b *bench, n, repeats int) error {
	whole, worked, err := b.apply(ctx, n, networksOf("hub", n))
	if err != nil {
		return err
	}
	peak, err := peakMemory(b.Pid())
	if err != nil {
		return err
	}
	b.results.add(measurement{What: "the most memory of the server so far", Resources: n, Value: float64(peak) / (1 << 20), Unit: mib})
	if err := b.reportFloor(ctx, n, worked); err != nil {
		return err
	}
	var leaf time.Duration
	for _, change := range []struct {
		what string
		of   func(round int) (name, patch string)
	}{
		{leafPlan, func(round int) (name, patch string) {
			return fmt.Sprintf("hub-leaf-%d", n-1), fmt.Sprintf(`{"spec":{"name":"renamed-%d"}}`, round)
		}},
		{hubPlan, func(round int) (name, patch string) {
			return "hub", fmt.Sprintf(`{"spec":{"tags":{"round":"%d"}}}`, round)
		}},
	} {
		var took []time.Duration
		for i := range repeats + 1 {
			name, patch := change.of(i)
			one, err := b.planOne(ctx, name, patch)
			if err != nil {
				return err
			}
			if i > 0 { // the first one warms the provider's process up
				took = append(took, one)
			}
		}
		if change.what == leafPlan {
			leaf = median(took)
		}
		b.results.add(measurement{What: change.what, Resources: n, Value: median(took).Seconds(), Unit: seconds, AtMost: 0.5})
		// The next plan finds one change again.
		if _, _, err := b.run(ctx, nil, "apply", "--all", "--auto-approve"); err != nil {
			return err
		}
	}
	destroyed, _, err := b.run(ctx, nil, "destroy", "--all", "--auto-approve")
	if err != nil {
		return err
	}
	b.results.took("destroy of all: the command", n, destroyed)
	return compareTerraform(ctx, b, n, hykube{apply: whole, destroy: destroyed, plan: leaf, memory: peak})
}

// networksOf returns the manifests of n networks. All refer to the first one, which has the name hub.
func networksOf(hub string, n int) []byte {
	var text bytes.Buffer
	for i := range n {
		name, title := fmt.Sprintf("%s-leaf-%d", hub, i), fmt.Sprintf("${sim_network.%s.name}-%d", hub, i)
		if i == 0 {
			name, title = hub, hub
		}
		fmt.Fprintf(&text, "---\napiVersion: sim.hykube.io/v1\nkind: sim-network\nmetadata: {name: %s, namespace: bench}\nspec: {name: '%s', cidr: 10.0.0.0/16}\n", name, title)
	}
	return text.Bytes()
}

// run runs a command of the plugin in the namespace of the bench. It returns how long the command took, and the
// processor time of the command alone.
func (b *bench) run(ctx context.Context, input []byte, args ...string) (took, own time.Duration, err error) {
	cmd := b.Command(ctx, "kubectl-hykube", append(args, "-n", namespace)...)
	cmd.Stdin = bytes.NewReader(input)
	began := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, 0, fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out[max(0, len(out)-2000):])
	}
	return time.Since(began), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
}

// apply applies the manifests of n resources with one command. Without manifests, the command applies what is recorded. apply
// reports how long the command and its phases took. It returns the time of the command, and for how long the server planned and applied.
func (b *bench) apply(ctx context.Context, n int, manifests []byte) (whole, worked time.Duration, err error) {
	w, err := b.client.Resource(plans).Namespace(namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, 0, fmt.Errorf("watch plans: %w", err)
	}
	defer w.Stop()
	reached := make(chan [2]milestones, 1)
	go func() { reached <- followPlans(w) }()
	began := time.Now()
	args := []string{"apply", "--all", "--auto-approve"}
	if manifests != nil {
		args = append(args, "-f", "-")
	}
	whole, own, err := b.run(ctx, manifests, args...)
	if err != nil {
		return 0, 0, err
	}
	at := <-reached
	speculative, plan := at[0], at[1]
	if plan.finished.IsZero() {
		return 0, 0, fmt.Errorf("watch plans: the watch ended before the plan")
	}
	planned, applied := plan.planned.Sub(plan.created), plan.finished.Sub(plan.approved)
	b.results.took(hykubeApply, n, whole)
	b.results.took("its own processor time", n, own)
	if manifests != nil {
		b.results.took("plan of the files, before the write", n, speculative.planned.Sub(began))
		b.results.took("write of all", n, plan.created.Sub(speculative.planned))
	}
	b.results.took("plan of all", n, planned)
	b.results.took("apply of all", n, applied)
	return whole, planned + applied, nil
}

// milestones are the times at which a watch showed that a plan was created, planned, approved and finished. The times in an
// object are in whole seconds.
type milestones struct{ created, planned, approved, finished time.Time }

// followPlans returns the milestones of the speculative plan of the files, and of the plan that follows it.
func followPlans(w watch.Interface) (at [2]milestones) {
	for e := range w.ResultChan() {
		p, ok := e.Object.(*unstructured.Unstructured)
		if !ok {
			return at
		}
		m := &at[1]
		if speculative, _, _ := unstructured.NestedBool(p.Object, "spec", "speculative"); speculative {
			m = &at[0]
		}
		for field, t := range map[string]*time.Time{"": &m.created, "plannedAt": &m.planned, "approval": &m.approved, "finishedAt": &m.finished} {
			_, found, _ := unstructured.NestedFieldNoCopy(p.Object, "status", field)
			if t.IsZero() && (found || field == "") {
				*t = time.Now()
			}
		}
		if !at[1].finished.IsZero() {
			return at
		}
	}
	return at
}

// latest returns the youngest object.
func latest(all []unstructured.Unstructured) *unstructured.Unstructured {
	last := slices.MaxFunc(all, func(a, b unstructured.Unstructured) int {
		return a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time)
	})
	return &last
}

// reportFloor reports how long the bare provider calls for n resources take. worked is how long the server planned and
// applied as many.
func (b *bench) reportFloor(ctx context.Context, n int, worked time.Duration) error {
	took, err := floor(ctx, b, n)
	if err != nil {
		return fmt.Errorf("make the bare provider calls: %w", err)
	}
	b.results.took(planAndApply, n, worked)
	b.results.took(providerCalls, n, took)
	b.results.add(measurement{What: "plan and apply, as a multiple of the provider calls alone", Resources: n, Value: worked.Seconds() / took.Seconds(), Unit: times, AtMost: goal(n, 1.5)})
	return nil
}

// planOne changes a network and returns how long the server took to make a plan of the namespace.
func (b *bench) planOne(ctx context.Context, name, patch string) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if _, err := b.client.Resource(networks).Namespace(namespace).Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		return 0, fmt.Errorf("change network: %w", err)
	}
	began := time.Now()
	p, err := b.plan(ctx, map[string]any{})
	if err != nil {
		return 0, err
	}
	took := time.Since(began)
	if updates, _, _ := unstructured.NestedInt64(p.Object, "status", "summary", "update"); updates != 1 {
		return 0, fmt.Errorf("plan %q: %v, want one update", p.GetName(), p.Object["status"])
	}
	return took, nil
}
