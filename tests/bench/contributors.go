package main

import (
	"bytes"
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/hykube/hykube/api/v1alpha1"
)

const (
	// writtenObjects is the number of resources of each namespace of measureContributors.
	writtenObjects = 100
	// writtenRounds is the number of measured writes of each resource.
	writtenRounds = 20
)

// written is a namespace whose resources some users have written.
type written struct {
	name              string
	users             []dynamic.Interface
	writes, plans     latencies
	writeCPU, planCPU time.Duration
}

// measureContributors measures writes and plans of resources that one user wrote, and of as many that more users wrote than a list of
// contributors names. The measurements of both namespaces take turns, so that the load of the machine affects both.
func measureContributors(ctx context.Context, b *bench, repeats int) error {
	one, many := &written{name: "one-writer"}, &written{name: "many-writers"}
	for ns, users := range map[*written]int{one: 1, many: v1alpha1.MaxContributors + 1} {
		if err := ns.prepare(ctx, b, users); err != nil {
			return err
		}
	}
	for round := range v1alpha1.MaxContributors + 1 + writtenRounds {
		for _, ns := range inTurn(one, many, round) {
			err := ns.measure(b, func() error { return ns.write(ctx, round) }, &ns.writeCPU, round > v1alpha1.MaxContributors) // then each list is full
			if err != nil {
				return err
			}
		}
	}
	for i := range repeats + 1 {
		for _, ns := range inTurn(one, many, i) {
			err := ns.measure(b, func() error { return ns.plan(ctx, b.client, i > 0) }, &ns.planCPU, i > 0) // the first one warms the provider's process up
			if err != nil {
				return err
			}
		}
	}
	for _, ns := range []*written{one, many} {
		b.reportLatencies(ns.name+": write a resource", ns.writes)
		b.reportLatencies(fmt.Sprintf("%s: plan %d resources", ns.name, writtenObjects), ns.plans)
	}
	ratio := func(what string, many, one time.Duration, goal float64) {
		b.results.add(measurement{What: "with many writers, as a multiple of one: " + what, Value: many.Seconds() / one.Seconds(), Unit: times, AtMost: goal})
	}
	ratio("processor time of writes", many.writeCPU, one.writeCPU, 0)
	ratio("write, p50", many.writes.percentile(50), one.writes.percentile(50), 0)
	ratio("write, p99", many.writes.percentile(99), one.writes.percentile(99), 1.1)
	ratio("processor time of plans", many.planCPU, one.planCPU, 0)
	ratio("plan, p50", many.plans.percentile(50), one.plans.percentile(50), 0)
	ratio("plan, p99", many.plans.percentile(99), one.plans.percentile(99), 1.1)
	return nil
}

// inTurn returns two namespaces in an order that changes with each turn.
func inTurn(a, b *written, turn int) []*written {
	if turn%2 == 0 {
		return []*written{a, b}
	}
	return []*written{b, a}
}

// measure adds the processor time that the server needs for f, if it counts.
func (w *written) measure(b *bench, f func() error, cpu *time.Duration, counts bool) error {
	before, err := usageOf(b.Pid())
	if err != nil {
		return err
	}
	if err := f(); err != nil {
		return err
	}
	after, err := usageOf(b.Pid())
	if counts {
		*cpu += after.cpu - before.cpu
	}
	return err
}

// plan makes a plan of the namespace, and keeps how long it took if it counts.
func (w *written) plan(ctx context.Context, client dynamic.Interface, counts bool) error {
	began := time.Now()
	err := planAll(ctx, client, w.name)
	if counts {
		w.plans = append(w.plans, time.Since(began))
	}
	return err
}

// prepare makes the namespace with its users and resources.
func (w *written) prepare(ctx context.Context, b *bench, users int) error {
	if _, err := b.Kubectl(ctx, "", "create", "namespace", w.name); err != nil {
		return err
	}
	for i := range users {
		user := fmt.Sprintf("user-%d", i)
		if _, err := b.Kubectl(ctx, "", "create", "rolebinding", user, "--clusterrole=edit", "--user="+user, "-n", w.name); err != nil {
			return err
		}
		config, err := b.Config()
		if err != nil {
			return err
		}
		client, err := tenantClient(config, user)
		if err != nil {
			return err
		}
		w.users = append(w.users, client)
	}
	var objects bytes.Buffer
	objects.WriteString(configured)
	for i := range writtenObjects {
		fmt.Fprintf(&objects, "---\napiVersion: sim.hykube.io/v1\nkind: sim-network\nmetadata: {name: n%[2]d}\nspec: {name: %[1]s-%[2]d, cidr: 10.0.0.0/16}\n", w.name, i)
	}
	_, err := b.Kubectl(ctx, objects.String(), "create", "-n", w.name, "--as=user-0", "-f", "-")
	return err
}

// write lets the user of a round write each resource, and keeps how long the requests took after the lists are full.
func (w *written) write(ctx context.Context, round int) error {
	client := w.users[round%len(w.users)].Resource(networks).Namespace(w.name)
	patch := fmt.Appendf(nil, `{"spec":{"tags":{"round":"%d"}}}`, round)
	for i := range writtenObjects {
		began := time.Now()
		if _, err := client.Patch(ctx, fmt.Sprintf("n%d", i), types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("write network %d of %s: %w", i, w.name, err)
		}
		if round > v1alpha1.MaxContributors {
			w.writes = append(w.writes, time.Since(began))
		}
	}
	return nil
}
