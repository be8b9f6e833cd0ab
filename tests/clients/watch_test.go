package clients

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/hykube/hykube/tests/harness"
)

var opens = flag.Int("opens", 400, "how many watches TestWatchesUnderLoad opens and closes")

// planLimit is the maximum time of a plan of one resource while watches open and close, on a machine that is not busy.
const planLimit = 2 * time.Second

var (
	ids   = schema.GroupVersionResource{Group: "random.hykube.io", Version: "v1", Resource: "random-ids"}
	plans = schema.GroupVersionResource{Group: "hykube.io", Version: "v1alpha1", Resource: "plans"}
)

// TestWatchesUnderLoad opens and closes watches at random. It cuts some and stops the process behind others, while it
// writes objects and makes plans. A continuous informer must receive all events, and in the end the server must use no
// more memory than before.
func TestWatchesUnderLoad(t *testing.T) {
	s := serve(t)
	install(t, s, "random", "hashicorp/random")
	client, err := dynamic.NewForConfig(config(t, s))
	if err != nil {
		t.Fatal(err)
	}
	create(t, client, "plans", "one")
	quiet := plan(t, client)
	before := goroutines(t, s)

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	informer := cache.NewSharedIndexInformer(listWatch(client.Resource(ids).Namespace("default")), &unstructured.Unstructured{}, 0, nil)
	var background sync.WaitGroup
	background.Go(func() { informer.RunWithContext(ctx) })
	writing, stopWriting := context.WithCancel(t.Context())
	defer stopWriting()
	var writer sync.WaitGroup
	count := 0
	writer.Go(func() {
		for ; writing.Err() == nil; count++ {
			create(t, client, "default", fmt.Sprintf("id-%06d", count))
			time.Sleep(5 * time.Millisecond) // limits the rate of the writer
		}
	})
	stopped := []*process{watched(t, s), watched(t, s)}
	load(t, client, func(i int) {
		if p := stopped[i%len(stopped)]; i%10 == 0 {
			p.signal(t, []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT}[rand.IntN(2)])
		}
		if i%50 == 0 {
			if took := plan(t, client); took > max(planLimit, 4*quiet) {
				t.Errorf("after %d watches a plan took %s; %s without them", i, took, quiet)
			}
		}
	})
	stopWriting()
	writer.Wait()
	t.Logf("%d watches, %d objects; a plan alone takes %s", *opens, count, quiet)
	harness.Eventually(t, "the informer that stayed has seen everything", func() error {
		if seen := len(informer.GetStore().List()); seen != count {
			return fmt.Errorf("%d of %d objects", seen, count)
		}
		return nil
	})
	last := fmt.Sprintf("id-%06d", count-1)
	for _, p := range stopped {
		p.signal(t, syscall.SIGCONT)
		harness.Eventually(t, "a process that was stopped sees everything or learns that its watch ended", func() error {
			if p.ended() || strings.Contains(p.out.String(), last) {
				return nil
			}
			return fmt.Errorf("it has not seen %s", last)
		})
		p.end()
	}
	stop()
	background.Wait()
	harness.Eventually(t, "the server has as many goroutines as before", func() error {
		if now := goroutines(t, s); now > before+30 {
			return fmt.Errorf("%d, and %d before", now, before)
		}
		return nil
	})
}

// load opens and closes watches, and calls each with its number.
func load(t *testing.T, client dynamic.Interface, each func(i int)) {
	t.Helper()
	var open sync.WaitGroup
	slots := make(chan struct{}, 40)
	for i := range *opens {
		each(i)
		slots <- struct{}{}
		open.Go(func() {
			defer func() { <-slots }()
			watchAWhile(t, client)
		})
	}
	open.Wait()
}

// watchAWhile expects every revision once and in order after a list, even if the watch ends in between.
func watchAWhile(t *testing.T, client dynamic.Interface) {
	of := client.Resource(ids).Namespace("default")
	list, err := of.List(t.Context(), metav1.ListOptions{Limit: 1})
	if err != nil {
		t.Error(err)
		return
	}
	last, _ := strconv.ParseInt(list.GetResourceVersion(), 10, 64)
	for range 1 + rand.IntN(2) {
		ctx, cut := context.WithTimeout(t.Context(), time.Duration(20+rand.IntN(300))*time.Millisecond)
		w, err := of.Watch(ctx, metav1.ListOptions{ResourceVersion: strconv.FormatInt(last, 10), AllowWatchBookmarks: rand.IntN(2) == 0})
		if err != nil {
			if cut(); ctx.Err() == nil {
				t.Error(err)
			}
			continue
		}
		for e := range w.ResultChan() {
			accessor, err := meta.Accessor(e.Object)
			if err != nil || e.Type == watch.Error {
				t.Errorf("the watch says %+v", e)
				break
			}
			revision, _ := strconv.ParseInt(accessor.GetResourceVersion(), 10, 64)
			if revision < last || revision == last && e.Type != watch.Bookmark {
				t.Errorf("the watch has %d after %d", revision, last)
			}
			last = revision
			if rand.IntN(20) == 0 {
				time.Sleep(time.Duration(rand.IntN(100)) * time.Millisecond) // a pause of the client
			}
		}
		w.Stop()
		cut()
	}
}

// create reports whether it created an object.
func create(t *testing.T, client dynamic.Interface, namespace, name string) bool {
	if namespace == "plans" {
		ns := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace}}}
		if _, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	id := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": ids.GroupVersion().String(), "kind": "random-id", "metadata": map[string]any{"name": name}, "spec": map[string]any{"byte_length": int64(8)},
	}}
	_, err := client.Resource(ids).Namespace(namespace).Create(t.Context(), id, metav1.CreateOptions{})
	if err != nil {
		t.Errorf("create %s: %v", name, err)
	}
	return err == nil
}

// plan makes a plan and returns the time that it took.
func plan(t *testing.T, client dynamic.Interface) time.Duration {
	t.Helper()
	begun := time.Now()
	of := client.Resource(plans).Namespace("plans")
	p, err := of.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": plans.GroupVersion().String(), "kind": "Plan", "metadata": map[string]any{"generateName": "p-"}, "spec": map[string]any{},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "the plan is made", func() error {
		now, err := of.Get(t.Context(), p.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		conditions, _, _ := unstructured.NestedSlice(now.Object, "status", "conditions")
		for _, c := range conditions {
			if c := c.(map[string]any); c["type"] == "Planned" && c["status"] == "True" {
				return nil
			}
		}
		return fmt.Errorf("its conditions are %v", conditions)
	})
	return time.Since(begun)
}

func listWatch(of dynamic.ResourceInterface) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return of.List(ctx, o) },
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return of.Watch(ctx, o)
		},
	}
}

var goroutinesMetric = regexp.MustCompile(`(?m)^go_goroutines (\d+)`)

// goroutines returns the number of the server's goroutines.
func goroutines(t *testing.T, s *harness.Server) int {
	t.Helper()
	client, err := kubernetes.NewForConfig(config(t, s))
	if err != nil {
		t.Fatal(err)
	}
	data, err := client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := goroutinesMetric.FindSubmatch(data)
	if found == nil {
		t.Fatal("the metrics have no go_goroutines")
	}
	n, _ := strconv.Atoi(string(found[1]))
	return n
}

// process is a `kubectl get --watch`.
type process struct {
	cmd  *exec.Cmd
	out  *output
	done chan struct{}
}

func watched(t *testing.T, s *harness.Server) *process {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	p := &process{cmd: s.Command(ctx, "hykube", "kubectl", "get", "random-ids", "--watch", "--output=name"), out: new(output), done: make(chan struct{})}
	p.cmd.Stdout = p.out
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = p.cmd.Wait(); cancel(); close(p.done) }()
	t.Cleanup(p.end)
	return p
}

func (p *process) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil && !p.ended() {
		t.Error(err)
	}
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	case <-time.After(10 * time.Millisecond):
		return false
	}
}

func (p *process) end() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}
