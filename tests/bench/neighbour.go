package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// The hostile neighbour keeps as many plans of as many resources running, and as many lists.
const (
	hostile          = "hostile"
	hostileResources = 200
	hostilePlans     = 16
	hostileLists     = 8
)

// pageSize is the number of objects in each measured list.
const pageSize = 100

// latencies are the times of one kind of request.
type latencies []time.Duration

func (l latencies) percentile(p int) time.Duration {
	sorted := slices.Sorted(slices.Values(l))
	return sorted[(len(sorted)*p-1)/100]
}

// measureNeighbour measures the plan and apply of one resource and the list of a namespace, alone and beside a hostile
// namespace. Both namespaces have users of their own, so that priority and fairness applies to them.
func measureNeighbour(ctx context.Context, b *bench, repeats int, profiles string) error {
	quiet, err := b.tenant(ctx, namespace)
	if err != nil {
		return err
	}
	if _, err := b.Kubectl(ctx, "", "create", "namespace", hostile); err != nil {
		return err
	}
	if _, err := b.tenant(ctx, hostile); err != nil {
		return err
	}
	var objects bytes.Buffer
	objects.WriteString("apiVersion: hykube.io/v1alpha1\nkind: ProviderConfig\nmetadata: {name: sim}\nspec: {provider: sim}\n")
	for i := range hostileResources {
		fmt.Fprintf(&objects, "---\napiVersion: sim.hykube.io/v1\nkind: sim-network\nmetadata: {name: n%[1]d}\nspec: {name: hostile-%[1]d, cidr: 10.0.0.0/16}\n", i)
	}
	if _, err := b.Kubectl(ctx, objects.String(), "create", "-n", hostile, "-f", "-"); err != nil {
		return err
	}
	// Both series list pages of the same length.
	if _, _, err := quiet.series(ctx, "warm", max(repeats, pageSize)); err != nil {
		return err
	}
	aloneApply, aloneList, err := quiet.series(ctx, "alone", repeats)
	if err != nil {
		return err
	}
	b.reportLatencies("plan and apply one resource, alone", aloneApply)
	b.reportLatencies("list a namespace, alone", aloneList)
	stop, err := b.startAttack(ctx)
	if err != nil {
		return err
	}
	profiled := make(chan error, 1)
	go func() { profiled <- b.profile(ctx, profiles) }()
	applies, lists, err := quiet.series(ctx, "beside", repeats)
	made, serr := stop()
	if err := errors.Join(err, serr, <-profiled); err != nil {
		return err
	}
	b.results.add(measurement{What: "plans that the hostile namespace made meanwhile", Value: float64(made)})
	b.reportLatencies("plan and apply one resource, beside a hostile namespace", applies)
	b.reportLatencies("list a namespace, beside a hostile namespace", lists)
	for _, ratio := range []struct {
		what          string
		beside, alone latencies
	}{{"plan and apply", applies, aloneApply}, {"list", lists, aloneList}} {
		b.results.add(measurement{
			What: "p99 beside, as a multiple of alone: " + ratio.what, Value: ratio.beside.percentile(99).Seconds() / ratio.alone.percentile(99).Seconds(),
			Unit: times, AtMost: 2,
		})
	}
	return nil
}

func (b *bench) reportLatencies(what string, l latencies) {
	b.results.took(what+", p50", 0, l.percentile(50))
	b.results.took(what+", p99", 0, l.percentile(99))
}

// tenant returns the bench with a user who has all rights in one namespace.
func (b *bench) tenant(ctx context.Context, namespace string) (*bench, error) {
	if _, err := b.Kubectl(ctx, "", "create", "rolebinding", "tenant", "--clusterrole=cluster-admin", "--user="+namespace, "-n", namespace); err != nil {
		return nil, err
	}
	config, err := b.Config()
	if err != nil {
		return nil, err
	}
	t := *b
	t.client, err = tenantClient(config, namespace)
	return &t, err
}

// tenantClient returns a client of the user of a namespace.
func tenantClient(config *rest.Config, namespace string) (dynamic.Interface, error) {
	config.Impersonate.UserName, config.QPS = namespace, -1
	return dynamic.NewForConfig(config)
}

// series measures plans and lists one after another.
func (b *bench) series(ctx context.Context, name string, repeats int) (applies, lists latencies, err error) {
	for i := range repeats {
		took, err := b.applyDirectly(ctx, fmt.Sprintf("%s-%d", name, i))
		if err != nil {
			return nil, nil, err
		}
		applies = append(applies, took)
		for range 5 {
			began := time.Now()
			if _, err := b.client.Resource(networks).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: pageSize}); err != nil {
				return nil, nil, fmt.Errorf("list networks: %w", err)
			}
			lists = append(lists, time.Since(began))
		}
	}
	return applies, lists, nil
}

// startAttack starts a process that attacks the server as the neighbour. stop ends it and returns the number of plans
// that it made. It has a process of its own and reads no list that it gets, because real clients run on other machines.
func (b *bench) startAttack(ctx context.Context) (stop func() (int, error), err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, "-attack", b.Kubeconfig())
	cmd.Stderr = os.Stderr
	until, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	var made bytes.Buffer
	cmd.Stdout = &made
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the hostile client: %w", err)
	}
	return func() (int, error) {
		if err := errors.Join(until.Close(), cmd.Wait()); err != nil {
			return 0, fmt.Errorf("stop the hostile client: %w", err)
		}
		return strconv.Atoi(strings.TrimSpace(made.String()))
	}, nil
}

// attackUntil attacks the server of a kubeconfig until input ends, and prints the number of plans that it made. It
// ignores errors of the server, which may refuse requests.
func attackUntil(ctx context.Context, kubeconfig string, input io.Reader) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := tenantClient(config, hostile)
	if err != nil {
		return err
	}
	lists, err := rest.UnversionedRESTClientFor(dynamic.ConfigFor(config))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	var made atomic.Int64
	for range hostilePlans {
		all.Go(func() {
			for ctx.Err() == nil {
				if planAll(ctx, client, hostile) == nil {
					made.Add(1)
				}
			}
		})
	}
	for range hostileLists {
		all.Go(func() {
			for ctx.Err() == nil {
				if list, err := lists.Get().AbsPath("apis", networks.Group, networks.Version, "namespaces", hostile, networks.Resource).Stream(ctx); err == nil {
					_, _ = io.Copy(io.Discard, list)
					_ = list.Close()
				}
			}
		})
	}
	_, err = io.Copy(io.Discard, input)
	cancel()
	all.Wait()
	fmt.Println(made.Load())
	return err
}

// planAll makes a plan of a namespace and waits for it.
func planAll(ctx context.Context, tenant dynamic.Interface, namespace string) error {
	client := tenant.Resource(plans).Namespace(namespace)
	p, err := client.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "hykube.io/v1alpha1", "kind": "Plan", "metadata": map[string]any{"generateName": "all-"}, "spec": map[string]any{},
	}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	w, err := client.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + p.GetName(), ResourceVersion: p.GetResourceVersion()})
	if err != nil {
		return err
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		if p, ok := e.Object.(*unstructured.Unstructured); ok && (is(p, "Planned") || is(p, "Stalled")) {
			return nil
		}
	}
	return errors.New("the watch ended before the plan was made")
}

// profile writes a CPU profile and an execution trace of the server into a directory. An empty name means none.
func (b *bench) profile(ctx context.Context, dir string) error {
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for file, path := range map[string]string{"cpu.pprof": "profile", "trace.out": "trace"} {
		data, err := b.Client().Get().AbsPath("/debug/pprof/"+path).Param("seconds", "5").Do(ctx).Raw()
		if err != nil {
			return fmt.Errorf("profile the server: %w", err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
