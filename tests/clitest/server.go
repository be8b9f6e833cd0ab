package clitest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/cli/terminal"
)

// Server answers the HTTP API of a Hykube server as far as the plugin uses it, from memory. The plugin's own
// HTTP path is real: kubeconfig, discovery, server-side apply, watches, subresources.
type Server struct {
	T       *testing.T
	command func(*session.Session) *cobra.Command
	Url     string
	ca      string
	Mu      sync.Mutex
	version int
	Objects map[string]map[string]any
	Plans   map[string]*v1alpha1.Plan
	Changes map[string][]v1alpha1.PlanChange
	Watches []chan *v1alpha1.Plan
	Calls   []string

	// kinds are the served kinds of provider sim; none until a Provider sim is recorded, unless installed.
	Installed bool
	// Planning works out a plan: its changes and conditions.
	Planning func(p *v1alpha1.Plan) []v1alpha1.PlanChange
	// Applying works on an approved plan; nil applies every change.
	Applying func(f *Server, p *v1alpha1.Plan)
	// Openapi is the document of the provider's kinds; there is none when it is empty.
	Openapi string
	// Querying answers queries.
	Querying func(q *v1alpha1.Query)
	// Validating answers validations.
	Validating func(v *v1alpha1.Validation)
	// Evaluating answers evaluations.
	Evaluating func(e *v1alpha1.Evaluation)
	// State is the raw state of every object.
	State map[string]any
	// User is the name of the user; empty if the server does not tell it.
	User string
	// Denied are the rights that the user lacks, such as "approve plans" or "update plans/approval".
	Denied []string
	// Uploaded holds the objects of speculative plans, and refusing the errors for objects of some names.
	Uploaded []*unstructured.Unstructured
	// Pruned are those that are to be planned as if they were deleted.
	Pruned   []v1alpha1.ObjectReference
	Refusing map[string]*metav1.Status
	// Owned are fields of objects of some names that another manager owns.
	Owned map[string][]metav1.StatusCause
	// Frozen is true if the server applies no plan, and says so with each answer.
	Frozen bool
	// MovedSince refuses approvals that are dry runs.
	MovedSince *metav1.Status
	// Refuse answers a request with an error before anything else looks at it.
	Refuse func(r *http.Request) *metav1.Status
	// Ctx is the context of the commands; nil means that of the test.
	Ctx context.Context
	// Disconnect closes all connections.
	Disconnect func()
}

// New starts a server for a command, such as cli.Command.
func New(t *testing.T, command func(*session.Session) *cobra.Command) *Server {
	f := &Server{T: t, command: command, Objects: map[string]map[string]any{}, Plans: map[string]*v1alpha1.Plan{}, Changes: map[string][]v1alpha1.PlanChange{}, Installed: true, Planning: Creates, Refusing: map[string]*metav1.Status{}}
	srv := httptest.NewUnstartedServer(f)
	srv.EnableHTTP2 = true
	srv.StartTLS() // client-go sends credentials over TLS alone
	f.ca = base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}))
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	f.Url, f.Disconnect = srv.URL, srv.CloseClientConnections
	return f
}

// Connect is a command without a verb, for tests of a session.
func Connect(s *session.Session) *cobra.Command {
	cmd := &cobra.Command{Use: "hykube", SilenceErrors: true, RunE: func(*cobra.Command, []string) error { return s.Connect() }}
	s.Flags.Add(cmd.PersistentFlags())
	return cmd
}

// Run executes the plugin against the server as a pipe would, and returns what it printed and its exit code.
func (f *Server) Run(args ...string) (out, errOut string, code int) {
	return f.RunIn(nil, "", args...)
}

// RunIn is Run with a changed session and with standard input.
func (f *Server) RunIn(change func(*session.Session), stdin string, args ...string) (string, string, int) {
	f.T.Helper()
	dir := f.T.TempDir()
	config := filepath.Join(dir, "kubeconfig")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: %q, certificate-authority-data: %s}}]\nusers: [{name: u, user: {token: secret}}]\ncontexts: [{name: c, context: {cluster: c, user: u, namespace: default}}]\ncurrent-context: c\n", f.Url, f.ca)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		f.T.Fatal(err)
	}
	f.T.Setenv("KUBECONFIG", config)
	f.T.Setenv("KUBECACHEDIR", filepath.Join(dir, "cache"))
	var out, errOut bytes.Buffer
	s := &session.Session{Terminal: terminal.New(genericiooptions.IOStreams{In: strings.NewReader(stdin), Out: &out, ErrOut: &errOut}),
		Interrupts: func() (<-chan struct{}, func()) { return nil, func() {} }}
	if change != nil {
		change(s)
	}
	cmd := f.command(s)
	cmd.SetArgs(append([]string{}, args...)) // nil would be the arguments of the test
	ctx := f.Ctx
	if ctx == nil {
		ctx = f.T.Context()
	}
	err := cmd.ExecuteContext(ctx)
	exit.Print(&errOut, err)
	return out.String(), errOut.String(), exit.Code(err)
}

// ServeHTTP answers the requests of the plugin.
func (f *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.Mu.Lock()
	f.Calls = append(f.Calls, r.Method+" "+r.URL.Path)
	refuse := f.Refuse
	f.Mu.Unlock()
	if refuse != nil {
		if st := refuse(r); st != nil {
			f.answer(w, int(st.Code), st)
			return
		}
	}
	if r.Header.Get("Authorization") != "Bearer secret" {
		f.answer(w, 401, Status(401, metav1.StatusReasonUnauthorized, "Unauthorized"))
		return
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case r.URL.Path == "/openapi/v3/apis/sim.hykube.io/v1" && f.Openapi != "":
		_, _ = io.WriteString(w, f.Openapi)
	case r.URL.Path == "/version":
		f.answer(w, 200, map[string]string{"gitVersion": "v0.1.0", "goVersion": "go1.26", "platform": "linux/amd64"})
	case r.URL.Path == "/api":
		f.answer(w, 200, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions", APIVersion: "v1"}, Versions: []string{"v1"}})
	case r.URL.Path == "/apis":
		f.answer(w, 200, f.groups())
	case len(parts) == 2 && parts[0] == "api", len(parts) == 3 && parts[0] == "apis":
		f.answer(w, 200, f.resources(strings.Join(parts[1:], "/")))
	case strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews"):
		f.reviewAccess(w, r)
	case strings.HasSuffix(r.URL.Path, "/selfsubjectreviews") && f.User != "":
		f.answer(w, 201, map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview", "status": map[string]any{"userInfo": map[string]any{"username": f.User}}})
	case parts[0] == "api":
		f.resource(w, r, "v1", parts[2:])
	case parts[0] == "apis":
		f.resource(w, r, parts[1]+"/"+parts[2], parts[3:])
	default:
		http.NotFound(w, r)
	}
}

func (f *Server) reviewAccess(w http.ResponseWriter, r *http.Request) {
	review := map[string]any{}
	_ = json.NewDecoder(r.Body).Decode(&review)
	a, _, _ := unstructured.NestedStringMap(review, "spec", "resourceAttributes")
	right := strings.TrimSuffix(a["verb"]+" "+a["resource"]+"/"+a["subresource"], "/")
	review["status"] = map[string]any{"allowed": !slices.Contains(f.Denied, right)}
	f.answer(w, 201, review)
}

func (f *Server) groups() metav1.APIGroupList {
	l := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	add := func(g, v string) {
		gv := metav1.GroupVersionForDiscovery{GroupVersion: g + "/" + v, Version: v}
		l.Groups = append(l.Groups, metav1.APIGroup{Name: g, Versions: []metav1.GroupVersionForDiscovery{gv}, PreferredVersion: gv})
	}
	add("hykube.io", "v1alpha1")
	if f.Installed {
		add("sim.hykube.io", "v1")
	}
	return l
}

func (f *Server) resources(gv string) metav1.APIResourceList {
	l := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv}
	add := func(plural, kind string) {
		l.APIResources = append(l.APIResources, metav1.APIResource{Name: plural, SingularName: kind, Kind: kind, Namespaced: true, Verbs: []string{"get", "list", "patch", "watch"}})
	}
	if gv == "sim.hykube.io/v1" && f.Installed {
		add("sim-networks", "sim-network")
		add("sim-subnets", "sim-subnet")
		add("data-sim-images", "data-sim-image")
		add("ephemeral-sim-tokens", "ephemeral-sim-token")
		add("action-sim-reboots", "action-sim-reboot")
	}
	return l
}

func (f *Server) resource(w http.ResponseWriter, r *http.Request, gv string, parts []string) {
	ns := ""
	if len(parts) >= 3 && parts[0] == "namespaces" && parts[2] != "undelete" {
		ns, parts = parts[1], parts[2:]
	}
	if parts[0] == "plans" {
		f.plan(w, r, ns, parts[1:])
		return
	}
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if parts[0] == "validations" {
		v := &v1alpha1.Validation{}
		if err := json.NewDecoder(r.Body).Decode(v); err != nil {
			f.answer(w, 400, Status(400, metav1.StatusReasonBadRequest, err.Error()))
			return
		}
		f.Validating(v)
		v.APIVersion, v.Kind = "hykube.io/v1alpha1", "Validation"
		f.answer(w, 201, v)
		return
	}
	if parts[0] == "evaluations" {
		e := &v1alpha1.Evaluation{}
		if err := json.NewDecoder(r.Body).Decode(e); err != nil {
			f.answer(w, 400, Status(400, metav1.StatusReasonBadRequest, err.Error()))
			return
		}
		f.Evaluating(e)
		e.APIVersion, e.Kind = "hykube.io/v1alpha1", "Evaluation"
		f.answer(w, 201, e)
		return
	}
	if parts[0] == "queries" {
		q := &v1alpha1.Query{}
		if err := json.NewDecoder(r.Body).Decode(q); err != nil {
			f.answer(w, 400, Status(400, metav1.StatusReasonBadRequest, err.Error()))
			return
		}
		f.Querying(q)
		q.APIVersion, q.Kind = "hykube.io/v1alpha1", "Query"
		f.answer(w, 201, q)
		return
	}
	if len(parts) == 1 && r.Method == http.MethodPost {
		f.create(w, r, gv+"/"+parts[0]+"/"+ns+"/")
		return
	}
	if len(parts) == 1 {
		prefix := gv + "/" + parts[0] + "/" // of all namespaces
		if ns != "" {
			prefix += ns + "/"
		}
		items := []any{}
		for _, k := range slices.Sorted(maps.Keys(f.Objects)) {
			record, selected := strings.CutPrefix(r.URL.Query().Get("fieldSelector"), "record=")
			if strings.HasPrefix(k, prefix) && (!selected || f.Objects[k]["record"] == record) {
				items = append(items, f.Objects[k])
			}
		}
		if r.URL.Query().Get("watch") != "" {
			return // ends at once: the caller looks again
		}
		kind := cmp.Or(map[string]string{"providers": "ProviderList", "resourcesets": "ResourceSetList", "stacks": "StackList", "modules": "ModuleList", "planrecords": "PlanRecordList", "resources": "ResourceList"}[parts[0]], "List")
		f.answer(w, 200, map[string]any{"apiVersion": gv, "kind": kind, "metadata": map[string]any{}, "items": items})
		return
	}
	key := gv + "/" + parts[0] + "/" + ns + "/" + parts[1]
	old, exists := f.Objects[key]
	if r.Method == http.MethodGet {
		if !exists {
			st := Status(404, metav1.StatusReasonNotFound, parts[0]+" \""+parts[1]+"\" not found")
			st.Details = &metav1.StatusDetails{Name: parts[1], Kind: parts[0]}
			f.answer(w, 404, st)
			return
		}
		if len(parts) == 3 && parts[2] == "state" {
			f.answer(w, 200, f.State)
			return
		}
		f.answer(w, 200, old)
		return
	}
	if exists && (len(parts) == 3 || r.Method == http.MethodDelete || r.Header.Get("Content-Type") == "application/merge-patch+json") {
		f.modify(w, r, key, old, parts[2:])
		return
	}
	body, _ := io.ReadAll(r.Body)
	in := map[string]any{}
	if err := json.Unmarshal(body, &in); err != nil || r.Header.Get("Content-Type") != "application/apply-patch+yaml" || r.URL.Query().Get("fieldValidation") != "Strict" {
		f.answer(w, 400, Status(400, metav1.StatusReasonBadRequest, "no strict server-side apply"))
		return
	}
	if r.URL.Query().Get("dryRun") != "" {
		if st := f.Refusing[parts[1]]; st != nil {
			f.answer(w, int(st.Code), st)
			return
		}
		f.answer(w, 201, in)
		return
	}
	code := 201
	if exists {
		code = 200
		if reflect.DeepEqual(in["spec"], old["spec"]) {
			f.answer(w, code, old)
			return
		}
	}
	f.version++
	m, _ := in["metadata"].(map[string]any)
	m["resourceVersion"], m["uid"], m["generation"] = strconv.Itoa(f.version), "u-"+parts[1], int64(1)
	if parts[0] == "providers" {
		f.Installed = true
		in["status"] = map[string]any{"observedGeneration": 1, "version": "1.0.0", "kinds": 2, "conditions": []any{map[string]any{"type": "Ready", "status": "True", "reason": "Installed"}}}
	}
	f.Objects[key] = in
	f.answer(w, code, in)
}

// create, modify and mergeInto need f.mu.
func (f *Server) create(w http.ResponseWriter, r *http.Request, prefix string) {
	in := map[string]any{}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || r.URL.Query().Get("fieldValidation") != "Strict" {
		f.answer(w, 400, Status(400, metav1.StatusReasonBadRequest, "no strict create"))
		return
	}
	name, _, _ := unstructured.NestedString(in, "metadata", "name")
	if f.Objects[prefix+name] != nil {
		f.answer(w, 409, Status(409, metav1.StatusReasonAlreadyExists, name+" already exists"))
		return
	}
	f.Objects[prefix+name] = in
	f.answer(w, 201, in)
}

// modify answers a merge patch, a delete, and the subresource taint.
func (f *Server) modify(w http.ResponseWriter, r *http.Request, key string, old map[string]any, sub []string) {
	u := &unstructured.Unstructured{Object: old}
	switch {
	case len(sub) == 1 && sub[0] == "undelete":
		u.SetDeletionTimestamp(nil)
	case len(sub) == 1:
		old["tainted"] = r.Method == http.MethodPost
	case r.Method == http.MethodDelete && len(u.GetFinalizers()) == 0:
		delete(f.Objects, key)
	case r.Method == http.MethodDelete:
		u.SetDeletionTimestamp(new(metav1.Now()))
	default:
		patch := map[string]any{}
		if err := json.NewDecoder(r.Body).Decode(&patch); err != nil || r.URL.Query().Get("fieldValidation") != "Strict" {
			f.answer(w, 400, Status(400, metav1.StatusReasonBadRequest, "no strict merge patch"))
			return
		}
		if version, _, _ := unstructured.NestedString(patch, "metadata", "resourceVersion"); version != "" && version != u.GetResourceVersion() {
			f.answer(w, 409, Status(409, metav1.StatusReasonConflict, "the object has been modified"))
			return
		}
		mergeInto(old, patch)
		f.version++
		u.SetGeneration(u.GetGeneration() + 1)
		u.SetResourceVersion(strconv.Itoa(f.version))
		fields, _ := json.Marshal(fieldsOf(patch))
		u.SetManagedFields(append(u.GetManagedFields(), metav1.ManagedFieldsEntry{Manager: r.URL.Query().Get("fieldManager"),
			Operation: metav1.ManagedFieldsOperationUpdate, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(string(fields))}))
	}
	f.answer(w, 200, old)
}

// fieldsOf are the names of the fields of a patch, as managedFields have them.
func fieldsOf(patch map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range patch {
		inner, _ := v.(map[string]any)
		out["f:"+k] = fieldsOf(inner)
	}
	return out
}

func mergeInto(to, patch map[string]any) {
	for k, v := range patch {
		switch m, ok := v.(map[string]any); {
		case v == nil:
			delete(to, k)
		case ok:
			inner, _ := to[k].(map[string]any)
			if inner == nil {
				inner = map[string]any{}
			}
			mergeInto(inner, m)
			to[k] = inner
		default:
			to[k] = v
		}
	}
}

// Status returns an error of the API.
func Status(code int32, reason metav1.StatusReason, message string) *metav1.Status {
	return &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}
}

func (f *Server) answer(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	if f.Frozen {
		w.Header().Set("Warning", "299 "+v1alpha1.WarningAgentFrozen+` "This server is frozen"`)
	}
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(v); err != nil {
		f.T.Logf("answer: %v", err)
	}
}

// Put stores an object.
func (f *Server) Put(u *unstructured.Unstructured, resource string) {
	f.version++
	u.SetResourceVersion(strconv.Itoa(f.version))
	f.Objects[u.GetAPIVersion()+"/"+resource+"/"+u.GetNamespace()+"/"+u.GetName()] = u.Object
}
