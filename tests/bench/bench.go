package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/hykube/hykube/tests/harness"
	"github.com/hykube/hykube/tests/simcloud"
)

const (
	// limit is the maximum time of a plan that the bench watches.
	limit     = 2 * time.Minute
	namespace = "bench"
)

// bench is a server and a cloud in a directory of their own.
type bench struct {
	*harness.Server
	cloud   *harness.Cloud
	client  dynamic.Interface
	results *results
}

func newBench(o options) (*bench, error) {
	binaries, err := o.Complete()
	if err != nil {
		return nil, err
	}
	cloud, err := harness.StartCloud(simcloud.Config{})
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "hykube-bench-")
	if err != nil {
		return nil, errors.Join(err, cloud.Stop())
	}
	env := []string{"SIMCLOUD_ADDRESS=" + cloud.Address}
	if o.set > 0 {
		env = append(env, "SIM_BATCH=1000")
	}
	return &bench{Server: &harness.Server{Binaries: binaries, Dir: dir, Env: env}, cloud: cloud, results: o.results}, nil
}

// start starts the server and returns how long it took to be ready.
func (b *bench) start(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	if err := b.Start(ctx); err != nil {
		return 0, err
	}
	took := time.Since(began)
	config, err := b.Config()
	if err == nil {
		b.client, err = dynamic.NewForConfig(config)
	}
	return took, err
}

func (b *bench) close() error {
	return errors.Join(b.Remove(), b.cloud.Stop())
}

// prepare installs the provider, so that the server is warm when the measurements begin.
func (b *bench) prepare(ctx context.Context) error {
	if _, err := b.Kubectl(ctx, "", "create", "namespace", namespace); err != nil {
		return err
	}
	err := b.Install(ctx, harness.Provider{Name: "sim", Source: "hykube/sim", Environment: []string{"SIMCLOUD_ADDRESS", "SIM_BATCH"}})
	if err == nil {
		_, err = b.Kubectl(ctx, configured, "create", "-n", namespace, "-f", "-")
	}
	return err
}

// configured is a ProviderConfig with a credential, as most clouds need one.
const configured = `apiVersion: v1
kind: Secret
metadata: {name: sim}
stringData: {token: bench}
---
apiVersion: hykube.io/v1alpha1
kind: ProviderConfig
metadata: {name: sim}
spec: {provider: sim, secretRefs: [{argument: token, name: sim, key: token}]}
`

// applyFile applies n resources from a file with one command, and returns the time that it took.
func (b *bench) applyFile(ctx context.Context, name string, n int) (time.Duration, error) {
	var text bytes.Buffer
	for i := range n {
		fmt.Fprintf(&text, "---\napiVersion: sim.hykube.io/v1\nkind: sim-network\nmetadata: {name: %[1]s-%[2]d, namespace: bench}\nspec: {name: %[1]s-%[2]d, cidr: 10.0.0.0/16}\n", name, i)
	}
	cmd := b.Command(ctx, "kubectl-hykube", "apply", "-f", "-", "--auto-approve", "-n", namespace)
	cmd.Stdin = &text
	began := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return time.Since(began), nil
}

var (
	networks = schema.GroupVersionResource{Group: "sim.hykube.io", Version: "v1", Resource: "sim-networks"}
	plans    = schema.GroupVersionResource{Group: "hykube.io", Version: "v1alpha1", Resource: "plans"}
)

// applyDirectly does with the API what the command does, and returns the server's time.
func (b *bench) applyDirectly(ctx context.Context, name string) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	began := time.Now()
	_, err := b.client.Resource(networks).Namespace(namespace).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "sim.hykube.io/v1", "kind": "sim-network",
		"metadata": map[string]any{"name": name},
		"spec":     map[string]any{"name": name, "cidr": "10.0.0.0/16"},
	}}, metav1.CreateOptions{})
	if err != nil {
		return 0, fmt.Errorf("create network: %w", err)
	}
	p, err := b.plan(ctx, map[string]any{"targets": []any{"sim_network." + name}})
	if err != nil {
		return 0, err
	}
	digest, _, _ := unstructured.NestedString(p.Object, "status", "digest")
	if err := unstructured.SetNestedMap(p.Object, map[string]any{"decision": "Approved", "digest": digest}, "status", "approval"); err != nil {
		return 0, err
	}
	if p, err = b.client.Resource(plans).Namespace(namespace).Update(ctx, p, metav1.UpdateOptions{}, "approval"); err != nil {
		return 0, fmt.Errorf("approve plan: %w", err)
	}
	_, err = b.await(ctx, p, "Ready")
	return time.Since(began), err
}

// plan makes a plan with the API.
func (b *bench) plan(ctx context.Context, spec map[string]any) (*unstructured.Unstructured, error) {
	p, err := b.client.Resource(plans).Namespace(namespace).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "hykube.io/v1alpha1", "kind": "Plan", "metadata": map[string]any{"generateName": "bench-"}, "spec": spec,
	}}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("create plan: %w", err)
	}
	return b.await(ctx, p, "Planned")
}

// await watches a plan until a condition of it is true.
func (b *bench) await(ctx context.Context, p *unstructured.Unstructured, condition string) (*unstructured.Unstructured, error) {
	w, err := b.client.Resource(plans).Namespace(namespace).Watch(ctx, metav1.ListOptions{
		FieldSelector: "metadata.name=" + p.GetName(), ResourceVersion: p.GetResourceVersion(),
	})
	if err != nil {
		return nil, fmt.Errorf("watch plan: %w", err)
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		p, ok := e.Object.(*unstructured.Unstructured)
		if !ok {
			return nil, fmt.Errorf("watch plan: %v", e.Object)
		}
		switch {
		case is(p, condition):
			return p, nil
		case is(p, "Stalled"):
			return nil, fmt.Errorf("plan %q is stalled: %v", p.GetName(), p.Object["status"])
		}
	}
	return nil, fmt.Errorf("plan %q is not %s in time", p.GetName(), condition)
}

func is(p *unstructured.Unstructured, condition string) bool {
	conditions, _, _ := unstructured.NestedSlice(p.Object, "status", "conditions")
	for _, c := range conditions {
		if m, _ := c.(map[string]any); m["type"] == condition {
			return m["status"] == "True"
		}
	}
	return false
}

// usage holds the resources that a process and its descendants have used.
type usage struct {
	rss int64
	cpu time.Duration
}

// ticks per second of the times in /proc: USER_HZ, which is 100 on every Linux that Go runs on.
const ticks = 100

func usageOf(pid int) (usage, error) {
	var u usage
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return u, fmt.Errorf("measure process (Linux only): %w", err)
	}
	// The name of the program, in brackets, may hold anything; numbers follow it.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	const utime, stime, rss = 11, 12, 21
	var n [22]int64
	for _, i := range []int{utime, stime, rss} {
		if n[i], err = strconv.ParseInt(fields[i], 10, 64); err != nil {
			return u, fmt.Errorf("measure process: %w", err)
		}
	}
	u.cpu = time.Duration(n[utime]+n[stime]) * time.Second / ticks
	u.rss = n[rss] * int64(os.Getpagesize())
	children, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, file := range children {
		data, _ := os.ReadFile(file)
		for child := range strings.FieldsSeq(string(data)) {
			if id, err := strconv.Atoi(child); err == nil {
				if c, err := usageOf(id); err == nil {
					u.rss, u.cpu = u.rss+c.rss, u.cpu+c.cpu
				}
			}
		}
	}
	return u, nil
}
