package server_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/hykube/hykube/server"
)

// delivery bounds how long a write may take to reach a watch.
const delivery = 2 * time.Second

var simNetworks = schema.GroupVersionResource{Group: "sim.hykube.io", Version: "v1", Resource: "sim-networks"}

func simNetwork(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "sim.hykube.io/v1", "kind": "sim-network", "metadata": map[string]any{"name": name}, "spec": map[string]any{"name": name},
	}}
}

// TestInformersOpenAndCloseTogether opens informers of all kinds and closes them at the same time, as a client does
// that exits. The next watch must receive the next write.
func TestInformersOpenAndCloseTogether(t *testing.T) {
	s := startT(t, server.Config{DataDir: t.TempDir(), Wire: manyKinds(31)})
	all := watchable(t, s)
	client := objects(t, s.admin())
	for round := range 8 {
		ctx, closeAll := context.WithCancel(t.Context())
		var open sync.WaitGroup
		var synced []cache.InformerSynced
		for _, kind := range all {
			informer := cache.NewSharedIndexInformer(listWatch(client.Resource(kind)), &unstructured.Unstructured{}, 0, nil)
			open.Go(func() { informer.RunWithContext(ctx) })
			synced = append(synced, informer.HasSynced)
		}
		open.Go(func() { writeUntil(ctx, client, round) })
		if !cache.WaitForCacheSync(waitLimit(ctx, deadline), synced...) {
			t.Fatalf("round %d: the informers have not synced", round)
		}
		closeAll()
		open.Wait()
		seesWrite(t, client, fmt.Sprintf("round-%d", round))
	}
	eventually(t, "the server is alive", func() bool {
		_, err := core(t, s.admin()).Discovery().RESTClient().Get().AbsPath("/livez").DoRaw(t.Context())
		return err == nil
	})
}

// manyKinds serves a provider with as many types.
func manyKinds(count int) func(context.Context, *server.Components) (server.Wiring, error) {
	return func(_ context.Context, h *server.Components) (server.Wiring, error) {
		p := sim()
		for i := len(p.Schema.Resources); i < count; i++ {
			p.Schema.Resources[fmt.Sprintf("sim_type%d", i)] = p.Schema.Resources["sim_network"]
		}
		return server.Wiring{}, h.Kinds.Set(p)
	}
}

// watchable lists the resources that can be watched.
func watchable(t *testing.T, s *instance) []schema.GroupVersionResource {
	t.Helper()
	_, lists, err := core(t, s.admin()).Discovery().ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	resources, err := discovery.GroupVersionResources(discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "watch"}}, lists))
	if err != nil {
		t.Fatal(err)
	}
	var out []schema.GroupVersionResource
	for gvr := range resources {
		out = append(out, gvr)
	}
	slices.SortFunc(out, func(a, b schema.GroupVersionResource) int { return strings.Compare(a.String(), b.String()) })
	return out
}

func listWatch(of dynamic.ResourceInterface) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return of.List(ctx, o) },
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return of.Watch(ctx, o)
		},
	}
}

func waitLimit(ctx context.Context, limit time.Duration) <-chan struct{} {
	ctx, cancel := context.WithTimeout(ctx, limit)
	context.AfterFunc(ctx, cancel)
	return ctx.Done()
}

// writeUntil writes objects until ctx ends.
func writeUntil(ctx context.Context, client dynamic.Interface, round int) {
	for i := 0; ctx.Err() == nil; i++ {
		_, _ = client.Resource(simNetworks).Namespace("default").Create(ctx, simNetwork(fmt.Sprintf("busy-%d-%d", round, i)), metav1.CreateOptions{})
	}
}

// seesWrite opens a watch, writes an object and expects its event in time.
func seesWrite(t *testing.T, client dynamic.Interface, name string) {
	t.Helper()
	networks := client.Resource(simNetworks).Namespace("default")
	now, err := networks.List(t.Context(), metav1.ListOptions{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	w, err := networks.Watch(t.Context(), metav1.ListOptions{ResourceVersion: now.GetResourceVersion()})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if _, err := networks.Create(t.Context(), simNetwork(name), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	late := time.After(delivery)
	for {
		select {
		case e, ok := <-w.ResultChan():
			if !ok {
				t.Fatalf("the watch ended before it saw %s", name)
			}
			if o, is := e.Object.(*unstructured.Unstructured); is && o.GetName() == name {
				return
			}
		case <-late:
			t.Fatalf("a watch has not seen %s within %s", name, delivery)
		}
	}
}
