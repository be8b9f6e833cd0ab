package clitest

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/session"
)

// Meanwhile is an input that calls a function when the command asks. It never answers.
type Meanwhile struct {
	once sync.Once
	Do   func()
	End  <-chan struct{}
}

// Read implements io.Reader.
func (m *Meanwhile) Read([]byte) (int, error) {
	m.once.Do(m.Do)
	<-m.End
	return 0, nil
}

// Network is a recorded object with infrastructure behind it.
func Network(f *Server, name string, change func(map[string]any)) {
	o := map[string]any{
		"apiVersion": "sim.hykube.io/v1", "kind": "sim-network",
		"metadata": map[string]any{"name": name, "namespace": "default", "uid": "u-" + name, "generation": int64(1), "finalizers": []any{v1alpha1.FinalizerState},
			"labels": map[string]any{"team": "infra"}, "annotations": map[string]any{"kubectl.kubernetes.io/last-applied-configuration": "{}", "keep": "me"}},
		"spec":      map[string]any{"name": name},
		"lifecycle": map[string]any{"preventDestroy": true, "import": map[string]any{"id": "net-0"}},
		"status": map[string]any{"observedGeneration": int64(1), "attributes": map[string]any{"id": "net-1", "name": name, "mtu": int64(1500), "secret": "(sensitive value)"},
			"conditions": []any{map[string]any{"type": "Ready", "status": "True", "reason": "Applied"}}},
	}
	if change != nil {
		change(o)
	}
	f.Put(&unstructured.Unstructured{Object: o}, "sim-networks")
}

// Unplanned makes an object one that no plan has made.
func Unplanned(o map[string]any) {
	delete(o, "status")
	delete(o["metadata"].(map[string]any), "finalizers")
}

// Object returns a network of the server.
func (f *Server) Object(name string) map[string]any {
	return f.Objects["sim.hykube.io/v1/sim-networks/default/"+name]
}

// Imports plans an import of each target.
func Imports(p *v1alpha1.Plan) []v1alpha1.PlanChange {
	out := Creates(p)
	for i := range out {
		out[i].Action, out[i].Before, out[i].AfterUnknown = v1alpha1.ActionNoOp, out[i].After, nil
		out[i].Importing = &v1alpha1.PlanImport{ID: "net-9"}
	}
	return out
}

// Keyboard has a key Ctrl-C, which each handler receives.
type Keyboard struct {
	mu       sync.Mutex
	handlers []chan struct{}
}

// Press presses Ctrl-C, and reports whether a handler receives it.
func (k *Keyboard) Press() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, h := range k.handlers {
		h <- struct{}{}
	}
	return len(k.handlers) > 0
}

// Interrupts is the interrupts of a session.
func (k *Keyboard) Interrupts() (<-chan struct{}, func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	h := make(chan struct{}, 8)
	k.handlers = append(k.handlers, h)
	return h, func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.handlers = slices.DeleteFunc(k.handlers, func(other chan struct{}) bool { return other == h })
	}
}

// ModuleDir writes files into a directory of a name, and returns its path.
func ModuleDir(t *testing.T, name string, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	for file, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Objects of files.
const (
	ModuleObject = "apiVersion: hykube.io/v1alpha1\nkind: Module\nmetadata: {name: written}\nspec: {providers: {sim: eu}}\n"
	NetworkFile  = "apiVersion: sim.hykube.io/v1\nkind: sim-network\nmetadata: {name: a}\n"
)

// HasNamespace makes a namespace, and in it a network for each name.
func (f *Server) HasNamespace(name string, networks ...string) {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	u.SetName(name)
	f.Put(u, "namespaces")
	for _, n := range networks {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "sim.hykube.io/v1", "kind": "sim-network"}}
		u.SetName(n)
		u.SetNamespace(name)
		f.Put(u, "sim-networks")
	}
}

// FirstFiles is a Provider, its ProviderConfig, and resources of it.
const FirstFiles = `apiVersion: sim.hykube.io/v1
kind: sim-subnet
metadata: {name: a}
spec: {network_id: "${sim_network.main.id}"}
---
# the network
apiVersion: sim.hykube.io/v1
kind: sim-network
metadata: {name: main}
spec: {cidr: 10.0.0.0/16, mtu: 1500}
---
apiVersion: hykube.io/v1alpha1
kind: ProviderConfig
metadata: {name: default}
spec: {provider: sim}
---
apiVersion: hykube.io/v1alpha1
kind: Provider
metadata: {name: sim}
spec: {source: hykube/sim}
---
apiVersion: v1
kind: Namespace
metadata: {name: default}
`

// Write writes a file of objects and returns its path.
func Write(t *testing.T, text string) string {
	t.Helper()
	p := filepath.Join(t.TempDir(), "first.yaml")
	if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

// Writes are the requests that changed anything but plans.
func (f *Server) Writes() []string {
	return slices.DeleteFunc(slices.Clone(f.Calls), func(call string) bool {
		return strings.HasPrefix(call, http.MethodGet) || strings.Contains(call, "/plans") || strings.Contains(call, "/selfsubject")
	})
}

// Lost makes an object one whose create has an unknown outcome, without an import.
func Lost(o map[string]any) {
	delete(o["lifecycle"].(map[string]any), "import")
	o["status"].(map[string]any)["conditions"] = []any{map[string]any{"type": "Ready", "status": "False", "reason": v1alpha1.ReasonCreateUnknown}}
}

// TwoFiles is a Secret and a network.
const TwoFiles = `apiVersion: sim.hykube.io/v1
kind: sim-network
metadata: {name: main}
spec: {cidr: 10.0.0.0/16}
---
apiVersion: v1
kind: Secret
metadata: {name: db}
data: {password: c3RhbGU=}
`

// RecordSecret puts a Secret on the server that differs from the one in twoFiles.
func (f *Server) RecordSecret(version string) {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "data": map[string]any{"password": "ZnJlc2g="}}}
	u.SetName("db")
	u.SetNamespace("default")
	u.SetUID("u-db")
	f.Put(u, "secrets")
	u.SetResourceVersion(version)
}

// OnTerminal lets a command ask.
func OnTerminal(s *session.Session) { s.Ask = true }

// WithoutAnswer lets no question have an answer.
func WithoutAnswer(s *session.Session) { s.Empty = true }

// PutStack records a stack.
func (f *Server) PutStack(s *v1alpha1.Stack) {
	f.T.Helper()
	s.APIVersion, s.Kind = v1alpha1.SchemeGroupVersion.String(), "Stack"
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(s)
	if err != nil {
		f.T.Fatal(err)
	}
	f.Put(&unstructured.Unstructured{Object: object}, "stacks")
}

// JSON returns a value of a change.
func JSON(text string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(text)} }
