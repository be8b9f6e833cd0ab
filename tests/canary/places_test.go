package canary

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/hykube/hykube/tests/harness"
)

// place is a place to search for secrets.
type place struct {
	name string
	// read returns the contents of the place, by location.
	read func(*testing.T, *world) map[string][]byte
	// plant writes the marker to a place to which no use of the secrets writes it.
	plant func(*testing.T, *world)
	// may reports whether a location may have a secret. Nil means never.
	may func(where string, s *secret) bool
}

// without removes from the data the part that may have the secret.
func (p place) without(where string, data []byte, s *secret) []byte {
	switch {
	case p.may != nil && p.may(where, s):
		return nil
	case s.spec != "" && bytes.HasPrefix(data, []byte("{")):
		return withoutSpec(where, data, s.spec)
	}
	return data
}

// withoutSpec removes from a response the spec of the object in which the author wrote the secret.
func withoutSpec(where string, data []byte, object string) []byte {
	var list struct {
		Items []map[string]any `json:"items"`
	}
	if json.Unmarshal(data, &list) != nil {
		return data
	}
	plural, name, _ := strings.Cut(object, "/")
	if !strings.Contains(where+"/", "/"+plural+"/") {
		return data
	}
	removed := false
	for _, item := range list.Items {
		meta, _ := item["metadata"].(map[string]any)
		if meta["name"] == name {
			delete(item, "spec")
			removed = true
		}
	}
	if !removed {
		return data
	}
	out, err := json.Marshal(list)
	if err != nil {
		return data
	}
	return out
}

func (w *world) places() []place {
	places := []place{
		{name: "log at debug", read: file(w.LogFile()), plant: plantProvider, may: func(_ string, s *secret) bool { return s.name == crashed }},
		{name: "database and WAL", read: below("db")},
		{name: "Temporal's files", read: below("temporal")},
		{name: "audit log", read: below("audit")},
		{name: "schemas and providers' files", read: below("schemas"), plant: plantFile("schemas")},
		{name: "all of the data directory", read: below("."), may: func(where string, s *secret) bool { return filepath.Base(where) == s.name }},
		{name: "temporary files", read: tree("tmp"), plant: plantFile("../tmp")},
		{name: "cache of the plugin", read: tree("cache"), plant: plantFile("../cache")},
		{name: "output of the plugin", read: printed("hykube ")},
		{name: "plan as text", read: printed("hykube show")},
		{name: "plan as Terraform's JSON", read: printed("terraform-json")},
		{name: "graph", read: printed("hykube graph")},
		{name: "status and history", read: printed("hykube status")},
		{name: "console", read: printed("console")},
		{name: "events", read: answers("/api/v1/events", "/apis/events.k8s.io/v1/events"), plant: plantEvent},
		{name: "messages of Notifications", read: messages},
		{name: "conditions", read: printed("jsonpath")},
		{name: "traces", read: traces},
		{name: "metrics", read: answers("/metrics"), plant: plantURL("/metrics")},
		{name: "profiles", read: answers("/debug/pprof/goroutine?debug=2", "/debug/pprof/heap?debug=1", "/debug/pprof/heap", "/debug/pprof/allocs?debug=1", "/debug/pprof/mutex?debug=1"), plant: plantURL("/debug")},
		{name: "documents", read: answers("/openapi/v2", "/openapi/v3", "/apis", "/api/v1"), plant: plantURL("/openapi")},
		{name: "payloads of Temporal", read: histories},
		{name: "arguments of processes", read: processes("cmdline"), plant: plantProcess},
		{name: "environment of providers", read: processes("environ"), plant: plantProcess, may: func(_ string, s *secret) bool { return s.name == "environment of a provider" }},
	}
	for _, role := range users {
		places = append(places, place{name: "API as " + role, read: api(role), may: func(where string, s *secret) bool {
			return strings.HasSuffix(where, "/secrets") && (role == "edit" || role == "admin")
		}})
	}
	return places
}

func file(path string) func(*testing.T, *world) map[string][]byte {
	return func(t *testing.T, _ *world) map[string][]byte {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return map[string][]byte{path: data}
	}
}

// below reads the files below a directory of the data directory, and tree those below a directory of the test.
func below(dir string) func(*testing.T, *world) map[string][]byte {
	return tree(filepath.Join("data", dir))
}

func tree(dir string) func(*testing.T, *world) map[string][]byte {
	return func(t *testing.T, w *world) map[string][]byte {
		found := map[string][]byte{}
		err := filepath.WalkDir(filepath.Join(w.Dir, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() || strings.HasPrefix(filepath.Base(path), "terraform-provider-") {
				return err
			}
			data, err := os.ReadFile(path)
			found[path] = data
			return err
		})
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		found["the directory "+dir] = nil
		return found
	}
}

func plantFile(dir string) func(*testing.T, *world) {
	return func(t *testing.T, w *world) {
		path := filepath.Join(w.Data(), dir, "planted")
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(w.marker.text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// printed returns the outputs of the commands whose line contains text.
func printed(text string) func(*testing.T, *world) map[string][]byte {
	return func(_ *testing.T, w *world) map[string][]byte {
		found := map[string][]byte{}
		for line, out := range w.printed {
			if strings.Contains(line, text) {
				found[line] = out
			}
		}
		return found
	}
}

// plantProvider makes the server log that it cannot install a provider.
func plantProvider(t *testing.T, w *world) {
	w.kubectl(false, "apiVersion: hykube.io/v1alpha1\nkind: Provider\nmetadata: {name: "+w.marker.text+"}\nspec: {source: hykube/none, version: 1.0.0}\n", "create", "-f", "-")
	harness.Eventually(t, "the server logs it", func() error {
		data, err := os.ReadFile(w.LogFile())
		if err == nil && !w.marker.in(data) {
			err = errors.New("it does not")
		}
		return err
	})
}

// plantEvent writes an event, since the server itself writes none.
func plantEvent(_ *testing.T, w *world) {
	w.kubectl(false, "apiVersion: v1\nkind: Event\nmetadata: {name: planted}\ninvolvedObject: {kind: Plan, namespace: "+namespace+"}\nmessage: "+w.marker.text+"\n", "create", "-f", "-")
}

func get(t *testing.T, config *rest.Config, path string) (int, []byte) {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "application/json, */*")
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, data
}

// planted holds fake servers by the first part of a path. They replace the real server, to show that answers finds
// secrets.
var planted = map[string]string{}

func answers(paths ...string) func(*testing.T, *world) map[string][]byte {
	return func(t *testing.T, w *world) map[string][]byte {
		config, err := w.Config()
		if err != nil {
			t.Fatal(err)
		}
		found := map[string][]byte{}
		for _, path := range paths {
			server := config
			if fake, ok := planted["/"+strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '?' })[0]]; ok {
				server = &rest.Config{Host: fake}
			}
			code, data := get(t, server, path)
			if code != http.StatusOK {
				t.Errorf("%s: %d", path, code)
			}
			found[path] = data
		}
		return found
	}
}

func plantURL(prefix string) func(*testing.T, *world) {
	return func(t *testing.T, w *world) {
		s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { fmt.Fprint(rw, w.marker.text) }))
		t.Cleanup(s.Close)
		planted[prefix] = s.URL
	}
}

// api returns every list that a user can get in the namespace and in the cluster, and the changes of each plan.
func api(role string) func(*testing.T, *world) map[string][]byte {
	return func(t *testing.T, w *world) map[string][]byte {
		admin, err := w.Config()
		if err != nil {
			t.Fatal(err)
		}
		config := rest.AnonymousClientConfig(admin)
		config.BearerToken = w.secretOf("bearer token of a user") + token(role)
		found := map[string][]byte{}
		for _, group := range []string{"/api/v1", "/apis/hykube.io/v1alpha1", "/apis/sim.hykube.io/v1", "/apis/rbac.authorization.k8s.io/v1", "/apis/events.k8s.io/v1"} {
			_, data := get(t, config, group)
			var list struct {
				Resources []struct {
					Name       string
					Namespaced bool
					Verbs      []string
				}
			}
			if err := json.Unmarshal(data, &list); err != nil {
				t.Fatal(err)
			}
			for _, r := range list.Resources {
				path := group + "/" + r.Name
				if r.Namespaced {
					path = group + "/namespaces/" + namespace + "/" + r.Name
				}
				if strings.Contains(r.Name, "/") {
					continue
				}
				code, data := get(t, config, path)
				found[path] = data
				if code == http.StatusOK && r.Namespaced {
					w.parts(t, config, path, data, found)
				}
			}
		}
		return found
	}
}

// parts reads the subresources of the objects in a list, but for the state that a right of its own guards.
func (w *world) parts(t *testing.T, config *rest.Config, path string, data []byte, found map[string][]byte) {
	t.Helper()
	var list struct {
		Items []struct{ Metadata struct{ Name string } }
	}
	if json.Unmarshal(data, &list) != nil {
		return
	}
	for _, item := range list.Items {
		subresources := []string{"status"}
		if strings.HasSuffix(path, "/plans") {
			subresources = append(subresources, "changes", "approval")
		}
		if !strings.Contains(path, "sim.hykube.io") && !strings.HasSuffix(path, "/plans") {
			continue
		}
		for _, sub := range subresources {
			_, data := get(t, config, path+"/"+item.Metadata.Name+"/"+sub)
			found[path+"/"+item.Metadata.Name+"/"+sub] = []byte(`{"items":[` + string(data) + `]}`)
		}
	}
}

// histories returns the history of each workflow as the Web UI shows it.
func histories(t *testing.T, w *world) map[string][]byte {
	config, err := w.Config()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]byte{}
	_, data := get(t, config, "/temporal/api/v1/namespaces/hykube/workflows?maximumPageSize=100")
	found["workflows"] = data
	var list struct {
		Executions []struct {
			Execution struct{ WorkflowId, RunId string }
		}
	}
	if err := json.Unmarshal(data, &list); err != nil || len(list.Executions) == 0 {
		t.Fatalf("%v: %.300s", err, data)
	}
	for _, e := range list.Executions {
		path := "/temporal/api/v1/namespaces/hykube/workflows/" + e.Execution.WorkflowId + "/history?execution.runId=" + e.Execution.RunId
		code, data := get(t, config, path)
		if code != http.StatusOK {
			t.Errorf("%s: %d", path, code)
		}
		found[path] = data
	}
	return found
}

// plantedProcesses holds the IDs of the processes that plant started.
var plantedProcesses []int

// processes reads a file of the server's process and of its descendants. The server's own environment has what its
// administrator gave it.
func processes(file string) func(*testing.T, *world) map[string][]byte {
	return func(t *testing.T, w *world) map[string][]byte {
		found := map[string][]byte{}
		for _, pid := range append(descendants(t, w.Pid()), plantedProcesses...) {
			if pid == w.Pid() && file == "environ" {
				continue
			}
			path := filepath.Join("/proc", strconv.Itoa(pid), file)
			if data, err := os.ReadFile(path); err == nil { // it may have ended
				found[path] = data
			}
		}
		return found
	}
}

// descendants returns a process and all processes that it started.
func descendants(t *testing.T, pid int) []int {
	t.Helper()
	all := []int{pid}
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		data, _ := os.ReadFile(task) // the thread may have ended
		for _, child := range strings.Fields(string(data)) {
			if n, err := strconv.Atoi(child); err == nil {
				all = append(all, descendants(t, n)...)
			}
		}
	}
	return all
}

func plantProcess(t *testing.T, w *world) {
	cmd := exec.Command("sh", "-c", "sleep 600 # "+w.marker.text)
	cmd.Env = []string{"PLANTED=" + w.marker.text}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	plantedProcesses = append(plantedProcesses, cmd.Process.Pid)
}
