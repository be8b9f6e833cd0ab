package cli

import (
	"bytes"
	"crypto/sha256"
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
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diff"
)

// fakeServer answers the HTTP API of a Hykube server as far as the plugin uses it, from memory. The plugin's own
// HTTP path is real: kubeconfig, discovery, server-side apply, watches, subresources.
type fakeServer struct {
	t       *testing.T
	url     string
	ca      string
	mu      sync.Mutex
	version int
	objects map[string]map[string]any
	plans   map[string]*v1alpha1.Plan
	changes map[string][]v1alpha1.PlanChange
	watches []chan *v1alpha1.Plan
	calls   []string

	// kinds are the served kinds of provider sim; none until a Provider sim is recorded, unless installed.
	installed bool
	// planning works out a plan: its changes and conditions.
	planning func(p *v1alpha1.Plan) []v1alpha1.PlanChange
	// applying works on an approved plan; nil applies every change.
	applying func(f *fakeServer, p *v1alpha1.Plan)
	// openapi is the document of the provider's kinds; there is none when it is empty.
	openapi string
	// querying answers queries.
	querying func(q *v1alpha1.Query)
	// validating answers validations.
	validating func(v *v1alpha1.Validation)
	// evaluating answers evaluations.
	evaluating func(e *v1alpha1.Evaluation)
	// state is the raw state of every object.
	state map[string]any
	// denied are the rights that the user lacks, such as "approve plans" or "update plans/approval".
	denied []string
	// uploaded are the objects of speculative plans, and refusing says what is wrong with those of some names.
	uploaded []*unstructured.Unstructured
	// pruned are those that are to be planned as if they were deleted.
	pruned   []v1alpha1.ObjectReference
	refusing map[string]*metav1.Status
	// owned are fields of objects of some names that another manager owns.
	owned map[string][]metav1.StatusCause
	// movedSince refuses approvals that are dry runs.
	movedSince *metav1.Status
	// refuse answers a request with an error before anything else looks at it.
	refuse func(r *http.Request) *metav1.Status
}

func newFakeServer(t *testing.T) *fakeServer {
	f := &fakeServer{t: t, objects: map[string]map[string]any{}, plans: map[string]*v1alpha1.Plan{}, changes: map[string][]v1alpha1.PlanChange{}, installed: true, planning: creates, refusing: map[string]*metav1.Status{}}
	srv := httptest.NewUnstartedServer(f)
	srv.EnableHTTP2 = true
	srv.StartTLS() // client-go sends credentials over TLS alone
	f.ca = base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}))
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	f.url = srv.URL
	return f
}

// run executes the plugin against the server as a pipe would, and returns what it printed and its exit code.
func (f *fakeServer) run(args ...string) (out, errOut string, code int) {
	return f.runIn(nil, "", args...)
}

func (f *fakeServer) runIn(change func(*session), stdin string, args ...string) (string, string, int) {
	f.t.Helper()
	dir := f.t.TempDir()
	config := filepath.Join(dir, "kubeconfig")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: %q, certificate-authority-data: %s}}]\nusers: [{name: u, user: {token: secret}}]\ncontexts: [{name: c, context: {cluster: c, user: u, namespace: default}}]\ncurrent-context: c\n", f.url, f.ca)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
	f.t.Setenv("KUBECONFIG", config)
	f.t.Setenv("KUBECACHEDIR", filepath.Join(dir, "cache"))
	var out, errOut bytes.Buffer
	s := &session{terminal: newTerminal(genericiooptions.IOStreams{In: strings.NewReader(stdin), Out: &out, ErrOut: &errOut}),
		interrupts: func() (<-chan struct{}, func()) { return nil, func() {} }}
	if change != nil {
		change(s)
	}
	cmd := newCommand(s)
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(f.t.Context())
	PrintError(&errOut, err)
	return out.String(), errOut.String(), ExitCode(err)
}

func (f *fakeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.calls = append(f.calls, r.Method+" "+r.URL.Path)
	refuse := f.refuse
	f.mu.Unlock()
	if refuse != nil {
		if st := refuse(r); st != nil {
			f.answer(w, int(st.Code), st)
			return
		}
	}
	if r.Header.Get("Authorization") != "Bearer secret" {
		f.answer(w, 401, status(401, metav1.StatusReasonUnauthorized, "Unauthorized"))
		return
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case r.URL.Path == "/openapi/v3/apis/sim.hykube.io/v1" && f.openapi != "":
		_, _ = io.WriteString(w, f.openapi)
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
	case parts[0] == "api":
		f.resource(w, r, "v1", parts[2:])
	case parts[0] == "apis":
		f.resource(w, r, parts[1]+"/"+parts[2], parts[3:])
	default:
		http.NotFound(w, r)
	}
}

func (f *fakeServer) reviewAccess(w http.ResponseWriter, r *http.Request) {
	review := map[string]any{}
	_ = json.NewDecoder(r.Body).Decode(&review)
	a, _, _ := unstructured.NestedStringMap(review, "spec", "resourceAttributes")
	right := strings.TrimSuffix(a["verb"]+" "+a["resource"]+"/"+a["subresource"], "/")
	review["status"] = map[string]any{"allowed": !slices.Contains(f.denied, right)}
	f.answer(w, 201, review)
}

func (f *fakeServer) groups() metav1.APIGroupList {
	l := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	add := func(g, v string) {
		gv := metav1.GroupVersionForDiscovery{GroupVersion: g + "/" + v, Version: v}
		l.Groups = append(l.Groups, metav1.APIGroup{Name: g, Versions: []metav1.GroupVersionForDiscovery{gv}, PreferredVersion: gv})
	}
	add("hykube.io", "v1alpha1")
	if f.installed {
		add("sim.hykube.io", "v1")
	}
	return l
}

func (f *fakeServer) resources(gv string) metav1.APIResourceList {
	l := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv}
	add := func(plural, kind string) {
		l.APIResources = append(l.APIResources, metav1.APIResource{Name: plural, SingularName: kind, Kind: kind, Namespaced: true, Verbs: []string{"get", "list", "patch", "watch"}})
	}
	if gv == "sim.hykube.io/v1" && f.installed {
		add("sim-networks", "sim-network")
		add("sim-subnets", "sim-subnet")
		add("data-sim-images", "data-sim-image")
		add("ephemeral-sim-tokens", "ephemeral-sim-token")
		add("action-sim-reboots", "action-sim-reboot")
	}
	return l
}

func (f *fakeServer) resource(w http.ResponseWriter, r *http.Request, gv string, parts []string) {
	ns := ""
	if len(parts) >= 3 && parts[0] == "namespaces" && parts[2] != "undelete" {
		ns, parts = parts[1], parts[2:]
	}
	if parts[0] == "plans" {
		f.plan(w, r, ns, parts[1:])
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if parts[0] == "validations" {
		v := &v1alpha1.Validation{}
		if err := json.NewDecoder(r.Body).Decode(v); err != nil {
			f.answer(w, 400, status(400, metav1.StatusReasonBadRequest, err.Error()))
			return
		}
		f.validating(v)
		v.APIVersion, v.Kind = "hykube.io/v1alpha1", "Validation"
		f.answer(w, 201, v)
		return
	}
	if parts[0] == "evaluations" {
		e := &v1alpha1.Evaluation{}
		if err := json.NewDecoder(r.Body).Decode(e); err != nil {
			f.answer(w, 400, status(400, metav1.StatusReasonBadRequest, err.Error()))
			return
		}
		f.evaluating(e)
		e.APIVersion, e.Kind = "hykube.io/v1alpha1", "Evaluation"
		f.answer(w, 201, e)
		return
	}
	if parts[0] == "queries" {
		q := &v1alpha1.Query{}
		if err := json.NewDecoder(r.Body).Decode(q); err != nil {
			f.answer(w, 400, status(400, metav1.StatusReasonBadRequest, err.Error()))
			return
		}
		f.querying(q)
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
		for _, k := range slices.Sorted(maps.Keys(f.objects)) {
			if strings.HasPrefix(k, prefix) {
				items = append(items, f.objects[k])
			}
		}
		if r.URL.Query().Get("watch") != "" {
			return // ends at once: the caller looks again
		}
		kind := "List"
		if parts[0] == "providers" {
			kind = "ProviderList"
		}
		f.answer(w, 200, map[string]any{"apiVersion": gv, "kind": kind, "metadata": map[string]any{}, "items": items})
		return
	}
	key := gv + "/" + parts[0] + "/" + ns + "/" + parts[1]
	old, exists := f.objects[key]
	if r.Method == http.MethodGet {
		if !exists {
			st := status(404, metav1.StatusReasonNotFound, parts[0]+" \""+parts[1]+"\" not found")
			st.Details = &metav1.StatusDetails{Name: parts[1], Kind: parts[0]}
			f.answer(w, 404, st)
			return
		}
		if len(parts) == 3 && parts[2] == "state" {
			f.answer(w, 200, f.state)
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
		f.answer(w, 400, status(400, metav1.StatusReasonBadRequest, "no strict server-side apply"))
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
		f.installed = true
		in["status"] = map[string]any{"observedGeneration": 1, "version": "1.0.0", "kinds": 2, "conditions": []any{map[string]any{"type": "Ready", "status": "True", "reason": "Installed"}}}
	}
	f.objects[key] = in
	f.answer(w, code, in)
}

// create, modify and mergeInto need f.mu.
func (f *fakeServer) create(w http.ResponseWriter, r *http.Request, prefix string) {
	in := map[string]any{}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || r.URL.Query().Get("fieldValidation") != "Strict" {
		f.answer(w, 400, status(400, metav1.StatusReasonBadRequest, "no strict create"))
		return
	}
	name, _, _ := unstructured.NestedString(in, "metadata", "name")
	if f.objects[prefix+name] != nil {
		f.answer(w, 409, status(409, metav1.StatusReasonAlreadyExists, name+" already exists"))
		return
	}
	f.objects[prefix+name] = in
	f.answer(w, 201, in)
}

// modify answers a merge patch, a delete, and the subresource taint.
func (f *fakeServer) modify(w http.ResponseWriter, r *http.Request, key string, old map[string]any, sub []string) {
	u := &unstructured.Unstructured{Object: old}
	switch {
	case len(sub) == 1 && sub[0] == "undelete":
		u.SetDeletionTimestamp(nil)
	case len(sub) == 1:
		old["tainted"] = r.Method == http.MethodPost
	case r.Method == http.MethodDelete && len(u.GetFinalizers()) == 0:
		delete(f.objects, key)
	case r.Method == http.MethodDelete:
		u.SetDeletionTimestamp(new(metav1.Now()))
	default:
		patch := map[string]any{}
		if err := json.NewDecoder(r.Body).Decode(&patch); err != nil || r.URL.Query().Get("fieldValidation") != "Strict" {
			f.answer(w, 400, status(400, metav1.StatusReasonBadRequest, "no strict merge patch"))
			return
		}
		if version, _, _ := unstructured.NestedString(patch, "metadata", "resourceVersion"); version != "" && version != u.GetResourceVersion() {
			f.answer(w, 409, status(409, metav1.StatusReasonConflict, "the object has been modified"))
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

func status(code int32, reason metav1.StatusReason, message string) *metav1.Status {
	return &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}
}

func (f *fakeServer) answer(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(v); err != nil {
		f.t.Logf("answer: %v", err)
	}
}

func (f *fakeServer) plan(w http.ResponseWriter, r *http.Request, ns string, parts []string) {
	f.mu.Lock()
	name, sub := "", ""
	if len(parts) > 0 {
		name = parts[0]
	}
	if len(parts) > 1 {
		sub = parts[1]
	}
	p := f.plans[ns+"/"+name]
	if name != "" && p == nil {
		f.mu.Unlock()
		st := status(404, metav1.StatusReasonNotFound, "plans.hykube.io \""+name+"\" not found")
		st.Details = &metav1.StatusDetails{Name: name, Kind: "plans"}
		f.answer(w, 404, st)
		return
	}
	if sub == "objects" {
		f.upload(w, r, p) // unlocks
		return
	}
	in := &v1alpha1.Plan{}
	if r.Method == http.MethodPost || r.Method == http.MethodPut {
		if err := json.NewDecoder(r.Body).Decode(in); err != nil {
			f.mu.Unlock()
			f.answer(w, 400, status(400, metav1.StatusReasonBadRequest, err.Error()))
			return
		}
	}
	switch {
	case r.Method == http.MethodPost:
		in.Name, in.Namespace, in.UID = in.GenerateName+"x7k2d", ns, "uid"
		if in.Spec.Speculative {
			in.Name, in.UID = in.GenerateName+"guess", "uid-guess"
		}
		in.CreationTimestamp = metav1.Now()
		p = in
		f.plans[ns+"/"+p.Name] = p
		f.set(p, v1alpha1.ConditionReady, false, v1alpha1.ReasonPlanning, "")
		out := p.DeepCopy()
		f.mu.Unlock()
		f.answer(w, 201, out)
		if !in.Spec.Speculative {
			go f.makePlan(p)
		}
	case sub == "changes":
		from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
		all := f.changes[ns+"/"+name]
		limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
		end := min(len(all), from+max(1, limit))
		l := v1alpha1.PlanChangeList{TypeMeta: metav1.TypeMeta{APIVersion: "hykube.io/v1alpha1", Kind: "PlanChangeList"}, Items: slices.Clone(all[from:end])}
		if end < len(all) {
			l.Continue = strconv.Itoa(end)
		}
		f.mu.Unlock()
		f.answer(w, 200, l)
	case sub == "approval":
		if in.Status.Approval.Digest != p.Status.Digest {
			f.mu.Unlock()
			f.answer(w, 409, status(409, metav1.StatusReasonConflict, "digest is another"))
			return
		}
		if r.URL.Query().Get("dryRun") != "" {
			f.mu.Unlock()
			if f.movedSince != nil {
				f.answer(w, 409, f.movedSince)
				return
			}
			f.answer(w, 200, p)
			return
		}
		p.Status.Approval = in.Status.Approval
		if in.Status.Approval.Decision == v1alpha1.DecisionDiscarded {
			f.set(p, v1alpha1.ConditionStalled, true, v1alpha1.ReasonDiscarded, "discarded")
		}
		f.touch(p)
		out := p.DeepCopy()
		f.mu.Unlock()
		f.answer(w, 200, out)
		if in.Status.Approval.Decision == v1alpha1.DecisionApproved {
			go f.apply(p)
		}
	case sub == "cancel":
		p.Status.Cancel = &v1alpha1.PlanCancel{At: new(metav1.Now())}
		f.touch(p)
		out := p.DeepCopy()
		f.mu.Unlock()
		f.answer(w, 200, out)
	case name != "":
		out := p.DeepCopy()
		f.mu.Unlock()
		f.answer(w, 200, out)
	case r.URL.Query().Get("watch") != "":
		f.watch(w, r, ns) // unlocks
	default:
		l := v1alpha1.PlanList{TypeMeta: metav1.TypeMeta{APIVersion: "hykube.io/v1alpha1", Kind: "PlanList"}}
		for _, p := range f.plans {
			l.Items = append(l.Items, *p)
		}
		f.mu.Unlock()
		f.answer(w, 200, l)
	}
}

// upload judges the objects of a speculative plan by what is recorded. It unlocks.
func (f *fakeServer) upload(w http.ResponseWriter, r *http.Request, p *v1alpha1.Plan) {
	defer f.mu.Unlock()
	in := &v1alpha1.PlanObjects{}
	if err := json.NewDecoder(r.Body).Decode(in); err != nil {
		f.answer(w, 400, status(400, metav1.StatusReasonBadRequest, err.Error()))
		return
	}
	out := &v1alpha1.PlanObjects{TypeMeta: metav1.TypeMeta{APIVersion: "hykube.io/v1alpha1", Kind: "PlanObjects"}}
	if in.Spec.Discard {
		delete(f.plans, p.Namespace+"/"+p.Name)
		f.answer(w, 201, out)
		return
	}
	refused := false
	for _, raw := range in.Spec.Objects {
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(raw.Raw); err != nil {
			f.t.Error(err)
		}
		f.uploaded = append(f.uploaded, u)
		result := v1alpha1.PlanObjectResult{Outcome: v1alpha1.ObjectCreated}
		if old := f.objects[u.GetAPIVersion()+"/"+strings.ToLower(u.GetKind())+"s/"+u.GetNamespace()+"/"+u.GetName()]; old != nil {
			result.Version = v1alpha1.ObjectVersion(&unstructured.Unstructured{Object: old})
			result.Outcome = v1alpha1.ObjectConfigured
			if fmt.Sprint(u.Object["spec"], u.Object["data"]) == fmt.Sprint(old["spec"], old["data"]) {
				result.Outcome = v1alpha1.ObjectUnchanged
			}
		}
		if _, ok := u.Object["data"]; ok && result.Outcome != v1alpha1.ObjectUnchanged {
			result.Keys = []string{"password"}
		}
		result.Conflicts = f.owned[u.GetName()]
		if why := f.refusing[u.GetName()]; why != nil {
			result, refused = v1alpha1.PlanObjectResult{Outcome: v1alpha1.ObjectRefused, Error: why}, true
		}
		out.Status.Results = append(out.Status.Results, result)
	}
	for _, ref := range in.Spec.Prune {
		f.pruned = append(f.pruned, ref)
		out.Status.Results = append(out.Status.Results, v1alpha1.PlanObjectResult{Outcome: v1alpha1.ObjectPruned})
	}
	f.answer(w, 201, out)
	if in.Spec.Complete && !refused {
		p.Status.UploadedObjects = new(int32(len(f.uploaded)))
		go f.makePlan(p)
	}
}

// contentsOf stands for what the server makes of changes.
func contentsOf(changes []v1alpha1.PlanChange) string {
	text := "hmac"
	for _, c := range changes {
		text += " " + c.Address + string(c.Action)
		if c.After != nil {
			text += string(c.After.Raw)
		}
	}
	return fmt.Sprintf("hmac-sha256:%x", sha256.Sum256([]byte(text)))
}

// watch streams the plan that the field selector names, from its current state on.
func (f *fakeServer) watch(w http.ResponseWriter, r *http.Request, ns string) {
	name := strings.TrimPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")
	c := make(chan *v1alpha1.Plan, 100)
	f.watches = append(f.watches, c)
	first := f.plans[ns+"/"+name].DeepCopy()
	f.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	send := func(p *v1alpha1.Plan) {
		b, _ := json.Marshal(p)
		_ = json.NewEncoder(w).Encode(metav1.WatchEvent{Type: "MODIFIED", Object: runtime.RawExtension{Raw: b}})
		w.(http.Flusher).Flush()
	}
	send(first)
	for {
		select {
		case p := <-c:
			if p.Name == name {
				send(p)
			}
		case <-r.Context().Done():
			return
		}
	}
}

// set and touch need f.mu.
func (f *fakeServer) set(p *v1alpha1.Plan, typ string, ok bool, reason, message string) {
	st := metav1.ConditionFalse
	if ok {
		st = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{Type: typ, Status: st, Reason: reason, Message: message})
	f.touch(p)
}

func (f *fakeServer) touch(p *v1alpha1.Plan) {
	f.version++
	p.ResourceVersion = strconv.Itoa(f.version)
	p.APIVersion, p.Kind = "hykube.io/v1alpha1", "Plan"
	for _, w := range f.watches {
		w <- p.DeepCopy()
	}
}

func (f *fakeServer) makePlan(p *v1alpha1.Plan) {
	f.mu.Lock()
	defer f.mu.Unlock()
	changes := f.planning(p)
	f.changes[p.Namespace+"/"+p.Name] = changes
	if changes == nil {
		return // planning said what is wrong
	}
	sum := &v1alpha1.PlanSummary{}
	for _, c := range changes {
		sum.Count(&c)
	}
	p.Status.Summary, p.Status.Digest, p.Status.Contents = sum, "sha256:abc", contentsOf(changes)
	meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionPlanned, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonPlanned})
	if diff.Changes(*sum)+int(sum.Import+sum.Move) == 0 {
		f.set(p, v1alpha1.ConditionReady, true, v1alpha1.ReasonNoChanges, "")
	} else if p.Spec.Speculative {
		f.set(p, v1alpha1.ConditionReady, true, v1alpha1.ReasonSpeculative, "")
	} else {
		f.set(p, v1alpha1.ConditionReady, false, v1alpha1.ReasonAwaitingApproval, "")
	}
}

func (f *fakeServer) apply(p *v1alpha1.Plan) {
	if f.applying != nil {
		f.applying(f, p)
		return
	}
	changes := f.changes[p.Namespace+"/"+p.Name]
	f.mu.Lock()
	defer f.mu.Unlock()
	g := &v1alpha1.PlanProgress{Total: int32(len(changes))}
	p.Status.Progress = g
	for i := range changes {
		now := metav1.Now()
		changes[i].State, changes[i].StartedAt = v1alpha1.ChangeRunning, &now
		g.Running = 1
		f.touch(p)
		changes[i].State, changes[i].FinishedAt = v1alpha1.ChangeDone, new(metav1.NewTime(now.Add(time.Second)))
		g.Running, g.Done = 0, g.Done+1
		f.touch(p)
	}
	p.Status.FinishedAt = new(metav1.Now())
	// The server writes both at once.
	meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionApplied, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonApplied})
	f.set(p, v1alpha1.ConditionReady, true, v1alpha1.ReasonApplied, "")
}

// creates plans a create for each target.
func creates(p *v1alpha1.Plan) []v1alpha1.PlanChange {
	out := []v1alpha1.PlanChange{}
	for i, a := range p.Spec.Targets {
		typ, name, _ := strings.Cut(a, ".")
		out = append(out, v1alpha1.PlanChange{
			Index: int32(i), Address: a, Type: typ, Action: v1alpha1.ActionCreate, State: v1alpha1.ChangePending, Provider: "registry.terraform.io/hykube/sim",
			Object:       v1alpha1.ObjectReference{APIVersion: "sim.hykube.io/v1", Kind: v1alpha1.KindOf(typ), Namespace: p.Namespace, Name: name},
			After:        &runtime.RawExtension{Raw: []byte(`{"name":"` + name + `"}`)},
			AfterUnknown: &runtime.RawExtension{Raw: []byte(`{"id":true}`)},
		})
	}
	return out
}

func (f *fakeServer) put(u *unstructured.Unstructured, resource string) {
	f.version++
	u.SetResourceVersion(strconv.Itoa(f.version))
	f.objects[u.GetAPIVersion()+"/"+resource+"/"+u.GetNamespace()+"/"+u.GetName()] = u.Object
}
