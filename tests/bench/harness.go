package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	// limit bounds everything that is waited for.
	limit     = 2 * time.Minute
	namespace = "bench"
)

// harness is a server and a cloud in a directory of their own.
type harness struct {
	options
	dir           string
	cloud, server *exec.Cmd
	address       string
	client        dynamic.Interface
}

func newHarness(o options) (*harness, error) {
	h := &harness{options: o}
	var err error
	for _, path := range []*string{&h.bin, &h.mirror} {
		if *path, err = filepath.Abs(*path); err != nil {
			return nil, err
		}
	}
	if h.dir, err = os.MkdirTemp("", "hykube-bench-"); err != nil {
		return nil, err
	}
	file := filepath.Join(h.dir, "cloud.address")
	if h.cloud, err = h.start("cloud.log", nil, "simcloud", "serve", "--address-file", file); err != nil {
		return nil, errors.Join(err, h.close())
	}
	err = poll(context.Background(), 5*time.Millisecond, func() error {
		data, err := os.ReadFile(file)
		h.address = strings.TrimSpace(string(data))
		return err
	})
	if err != nil {
		return nil, errors.Join(err, h.close())
	}
	return h, nil
}

func (h *harness) start(log string, env []string, name string, args ...string) (*exec.Cmd, error) {
	out, err := os.OpenFile(filepath.Join(h.dir, log), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd := exec.Command(filepath.Join(h.bin, name), args...)
	cmd.Stdout, cmd.Stderr, cmd.Env = out, out, append(os.Environ(), env...)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return cmd, nil
}

func (h *harness) kubeconfig() string { return filepath.Join(h.dir, "data", "admin.kubeconfig") }

// startServer starts the server and returns how long it took to be ready.
func (h *harness) startServer(ctx context.Context) (time.Duration, error) {
	// A kubeconfig of an earlier start names another port.
	_ = os.Remove(h.kubeconfig())
	began := time.Now()
	var err error
	h.server, err = h.start("server.log", []string{"SIMCLOUD_ADDRESS=" + h.address}, "hykube",
		"server", "--data-dir", filepath.Join(h.dir, "data"), "--secure-port", "0", "--provider-mirror", h.mirror)
	if err != nil {
		return 0, err
	}
	var config *rest.Config
	err = poll(ctx, 5*time.Millisecond, func() error {
		if config == nil {
			c, err := clientcmd.BuildConfigFromFlags("", h.kubeconfig())
			if err != nil {
				return err
			}
			c.QPS = -1
			config = c
		}
		return ready(ctx, config)
	})
	took := time.Since(began)
	if err != nil {
		return 0, fmt.Errorf("start server: %w", err)
	}
	h.client, err = dynamic.NewForConfig(config)
	return took, err
}

func ready(ctx context.Context, config *rest.Config) error {
	c := rest.CopyConfig(config)
	c.GroupVersion, c.NegotiatedSerializer = &schema.GroupVersion{}, scheme.Codecs.WithoutConversion()
	client, err := rest.UnversionedRESTClientFor(c)
	if err != nil {
		return err
	}
	return client.Get().AbsPath("/readyz").Do(ctx).Error()
}

func (h *harness) stopServer() error {
	if h.server == nil {
		return nil
	}
	err := stop(h.server)
	h.server = nil
	return err
}

func stop(cmd *exec.Cmd) error {
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	timer := time.AfterFunc(15*time.Second, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("stop %s: %w", filepath.Base(cmd.Path), err)
	}
	return nil
}

func (h *harness) close() error {
	err := h.stopServer()
	if h.cloud != nil {
		err = errors.Join(err, stop(h.cloud))
	}
	return errors.Join(err, os.RemoveAll(h.dir))
}

// prepare installs the provider, so that what follows finds a warm server.
func (h *harness) prepare(ctx context.Context) error {
	const objects = `apiVersion: v1
kind: Namespace
metadata: {name: bench}
---
apiVersion: hykube.io/v1alpha1
kind: Provider
metadata: {name: sim}
spec: {source: registry.terraform.io/hykube/sim}
`
	_, err := h.plugin(ctx, objects, "apply", "-f", "-", "--auto-approve")
	return err
}

// applyFile takes n resources from a file to the cloud with one command, and returns how long that took.
func (h *harness) applyFile(ctx context.Context, name string, n int) (time.Duration, error) {
	var text bytes.Buffer
	for i := range n {
		fmt.Fprintf(&text, "---\napiVersion: sim.hykube.io/v1\nkind: sim-network\nmetadata: {name: %[1]s-%[2]d, namespace: bench}\nspec: {name: %[1]s-%[2]d, cidr: 10.0.0.0/16}\n", name, i)
	}
	return h.plugin(ctx, text.String(), "apply", "-f", "-", "--auto-approve", "-n", namespace)
}

func (h *harness) plugin(ctx context.Context, stdin string, args ...string) (time.Duration, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(h.bin, "kubectl-hykube"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+h.kubeconfig(), "KUBECACHEDIR="+filepath.Join(h.dir, "cache"))
	cmd.Stdin = strings.NewReader(stdin)
	began := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("kubectl hykube %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return time.Since(began), nil
}

var (
	networks = schema.GroupVersionResource{Group: "sim.hykube.io", Version: "v1", Resource: "sim-networks"}
	plans    = schema.GroupVersionResource{Group: "hykube.io", Version: "v1alpha1", Resource: "plans"}
)

// applyDirectly does with the API what the command does, and returns how long the server took.
func (h *harness) applyDirectly(ctx context.Context, name string) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	began := time.Now()
	_, err := h.client.Resource(networks).Namespace(namespace).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "sim.hykube.io/v1", "kind": "sim-network",
		"metadata": map[string]any{"name": name},
		"spec":     map[string]any{"name": name, "cidr": "10.0.0.0/16"},
	}}, metav1.CreateOptions{})
	if err != nil {
		return 0, fmt.Errorf("create network: %w", err)
	}
	p, err := h.client.Resource(plans).Namespace(namespace).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "hykube.io/v1alpha1", "kind": "Plan",
		"metadata": map[string]any{"generateName": "bench-"},
		"spec":     map[string]any{"targets": []any{"sim_network." + name}},
	}}, metav1.CreateOptions{})
	if err != nil {
		return 0, fmt.Errorf("create plan: %w", err)
	}
	if p, err = h.await(ctx, p, "Planned"); err != nil {
		return 0, err
	}
	digest, _, _ := unstructured.NestedString(p.Object, "status", "digest")
	if err := unstructured.SetNestedMap(p.Object, map[string]any{"decision": "Approved", "digest": digest}, "status", "approval"); err != nil {
		return 0, err
	}
	if p, err = h.client.Resource(plans).Namespace(namespace).Update(ctx, p, metav1.UpdateOptions{}, "approval"); err != nil {
		return 0, fmt.Errorf("approve plan: %w", err)
	}
	_, err = h.await(ctx, p, "Ready")
	return time.Since(began), err
}

// await watches a plan until a condition of it is true.
func (h *harness) await(ctx context.Context, p *unstructured.Unstructured, condition string) (*unstructured.Unstructured, error) {
	w, err := h.client.Resource(plans).Namespace(namespace).Watch(ctx, metav1.ListOptions{
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

func poll(ctx context.Context, every time.Duration, done func() error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		err := done()
		if err == nil {
			return nil
		}
		select {
		case <-time.After(every):
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		}
	}
}

// usage is what a process and those below it cost so far.
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
