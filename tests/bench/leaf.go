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
)

// measureOne applies n resources that all refer to one, and then measures a plan after a change of one of them: the last
// one, or if hub is true the one that the others refer to. No value that they refer to changes. The time of such a plan
// should not depend on n.
func measureOne(ctx context.Context, b *bench, n, repeats int, changesHub bool) error {
	hub := fmt.Sprintf("hub-%d", n)
	began := time.Now()
	whole, own, err := b.run(ctx, networksOf(hub, n), "apply", "-f", "-", "--auto-approve")
	if err != nil {
		return err
	}
	report(fmt.Sprintf("the command, %d resources that refer to one", n), "%s, of which its own processor time is %s", ms(whole), ms(own))
	worked, err := b.reportPhases(ctx, began)
	if err != nil {
		return err
	}
	var took []time.Duration
	for i := range repeats + 1 {
		name, patch := fmt.Sprintf("%s-leaf-%d", hub, n-1), fmt.Sprintf(`{"spec":{"name":"renamed-%d"}}`, i)
		if changesHub {
			name, patch = hub, fmt.Sprintf(`{"spec":{"tags":{"round":"%d"}}}`, i)
		}
		one, err := b.planOne(ctx, name, patch)
		if err != nil {
			return err
		}
		if i > 0 { // the first one warms the provider's process up
			took = append(took, one)
		}
	}
	u, err := usageOf(b.Pid())
	if err != nil {
		return err
	}
	what := "plan of one changed resource of %d"
	if changesHub {
		what = "plan of a changed resource that %d refer to"
	}
	report(fmt.Sprintf(what, n), "%s", ms(median(took)))
	report(fmt.Sprintf("memory with %d resources", n), "%d MB", u.rss>>20)
	if err := b.reportFloor(ctx, n, worked); err != nil {
		return err
	}
	return compareTerraform(ctx, b, n, changesHub, whole, median(took))
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

// run runs a command of the plugin in the namespace of the bench. It returns how long the command took, and the processor
// time of the command alone.
func (b *bench) run(ctx context.Context, input []byte, args ...string) (took, own time.Duration, err error) {
	cmd := b.Command(ctx, "kubectl-hykube", append(args, "-n", namespace)...)
	cmd.Stdin = bytes.NewReader(input)
	began := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, 0, fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out[max(0, len(out)-2000):])
	}
	return time.Since(began), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
}

// reportPhases reports when the phases of the last plan began and ended, in seconds after a time. It returns how long the
// server planned and applied.
func (b *bench) reportPhases(ctx context.Context, since time.Time) (worked time.Duration, err error) {
	list, err := b.client.Resource(plans).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) == 0 {
		return 0, fmt.Errorf("list plans: %d, %w", len(list.Items), err)
	}
	last := latest(list.Items)
	created := last.GetCreationTimestamp()
	at := []time.Time{created.Time} // in whole seconds
	for _, path := range [][]string{{"plannedAt"}, {"approval", "at"}, {"finishedAt"}} {
		text, _, _ := unstructured.NestedString(last.Object, append([]string{"status"}, path...)...)
		t, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			return 0, fmt.Errorf("plan %q: %w", last.GetName(), err)
		}
		at = append(at, t)
	}
	var after []string
	for _, t := range at {
		after = append(after, fmt.Sprintf("%.1f s", t.Sub(since).Seconds()))
	}
	report("  objects written, planned, approved, applied after", "%s", strings.Join(after, ", "))
	return at[1].Sub(at[0]) + at[3].Sub(at[2]), nil
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
	report("  the provider calls alone", "%s; plan and apply took %s, %.2f times as long", ms(took), ms(worked), worked.Seconds()/took.Seconds())
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
	p, err := b.client.Resource(plans).Namespace(namespace).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "hykube.io/v1alpha1", "kind": "Plan", "metadata": map[string]any{"generateName": "leaf-"}, "spec": map[string]any{},
	}}, metav1.CreateOptions{})
	if err != nil {
		return 0, fmt.Errorf("create plan: %w", err)
	}
	if p, err = b.await(ctx, p, "Planned"); err != nil {
		return 0, err
	}
	took := time.Since(began)
	if updates, _, _ := unstructured.NestedInt64(p.Object, "status", "summary", "update"); updates != 1 {
		return 0, fmt.Errorf("plan %q: %v, want one update", p.GetName(), p.Object["status"])
	}
	return took, nil
}
