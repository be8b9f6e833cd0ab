package clitest

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diff"
)

func (f *Server) plan(w http.ResponseWriter, r *http.Request, ns string, parts []string) {
	f.Mu.Lock()
	name, sub := "", ""
	if len(parts) > 0 {
		name = parts[0]
	}
	if len(parts) > 1 {
		sub = parts[1]
	}
	p := f.Plans[ns+"/"+name]
	if name != "" && p == nil {
		f.Mu.Unlock()
		st := Status(404, metav1.StatusReasonNotFound, "plans.hykube.io \""+name+"\" not found")
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
			f.Mu.Unlock()
			f.answer(w, 400, Status(400, metav1.StatusReasonBadRequest, err.Error()))
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
		f.Plans[ns+"/"+p.Name] = p
		f.Set(p, v1alpha1.ConditionReady, false, v1alpha1.ReasonPlanning, "")
		out := p.DeepCopy()
		f.Mu.Unlock()
		f.answer(w, 201, out)
		if !in.Spec.Speculative {
			go f.makePlan(p)
		}
	case sub == "changes":
		from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
		all := f.Changes[ns+"/"+name]
		limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
		end := min(len(all), from+max(1, limit))
		l := v1alpha1.PlanChangeList{TypeMeta: metav1.TypeMeta{APIVersion: "hykube.io/v1alpha1", Kind: "PlanChangeList"}, Items: slices.Clone(all[from:end])}
		if end < len(all) {
			l.Continue = strconv.Itoa(end)
		}
		f.Mu.Unlock()
		f.answer(w, 200, l)
	case sub == "approval":
		if in.Status.Approval.Digest != p.Status.Digest {
			f.Mu.Unlock()
			f.answer(w, 409, Status(409, metav1.StatusReasonConflict, "digest is another"))
			return
		}
		if r.URL.Query().Get("dryRun") != "" {
			f.Mu.Unlock()
			if f.MovedSince != nil {
				f.answer(w, 409, f.MovedSince)
				return
			}
			f.answer(w, 200, p)
			return
		}
		p.Status.Approval = in.Status.Approval
		if in.Status.Approval.Decision == v1alpha1.DecisionDiscarded {
			f.Set(p, v1alpha1.ConditionStalled, true, v1alpha1.ReasonDiscarded, "discarded")
		}
		f.Touch(p)
		out := p.DeepCopy()
		f.Mu.Unlock()
		f.answer(w, 200, out)
		if in.Status.Approval.Decision == v1alpha1.DecisionApproved {
			go f.Apply(p)
		}
	case sub == "cancel":
		p.Status.Cancel = &v1alpha1.PlanCancel{At: new(metav1.Now())}
		f.Touch(p)
		out := p.DeepCopy()
		f.Mu.Unlock()
		f.answer(w, 200, out)
	case name != "":
		out := p.DeepCopy()
		f.Mu.Unlock()
		f.answer(w, 200, out)
	case r.URL.Query().Get("watch") != "":
		f.watch(w, r, ns) // unlocks
	default:
		l := v1alpha1.PlanList{TypeMeta: metav1.TypeMeta{APIVersion: "hykube.io/v1alpha1", Kind: "PlanList"}}
		for _, p := range f.Plans {
			l.Items = append(l.Items, *p)
		}
		f.Mu.Unlock()
		f.answer(w, 200, l)
	}
}

// upload checks the objects of a speculative plan against the recorded ones. It unlocks.
func (f *Server) upload(w http.ResponseWriter, r *http.Request, p *v1alpha1.Plan) {
	defer f.Mu.Unlock()
	in := &v1alpha1.PlanObjects{}
	if err := json.NewDecoder(r.Body).Decode(in); err != nil {
		f.answer(w, 400, Status(400, metav1.StatusReasonBadRequest, err.Error()))
		return
	}
	out := &v1alpha1.PlanObjects{TypeMeta: metav1.TypeMeta{APIVersion: "hykube.io/v1alpha1", Kind: "PlanObjects"}}
	if in.Spec.Discard {
		delete(f.Plans, p.Namespace+"/"+p.Name)
		f.answer(w, 201, out)
		return
	}
	refused := false
	for _, raw := range in.Spec.Objects {
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(raw.Raw); err != nil {
			f.T.Error(err)
		}
		f.Uploaded = append(f.Uploaded, u)
		result := v1alpha1.PlanObjectResult{Outcome: v1alpha1.ObjectCreated}
		if old := f.Objects[u.GetAPIVersion()+"/"+strings.ToLower(u.GetKind())+"s/"+u.GetNamespace()+"/"+u.GetName()]; old != nil {
			result.Version = v1alpha1.ObjectVersion(&unstructured.Unstructured{Object: old})
			result.Outcome = v1alpha1.ObjectConfigured
			if fmt.Sprint(u.Object["spec"], u.Object["data"]) == fmt.Sprint(old["spec"], old["data"]) {
				result.Outcome = v1alpha1.ObjectUnchanged
			}
		}
		if _, ok := u.Object["data"]; ok && result.Outcome != v1alpha1.ObjectUnchanged {
			result.Keys = []string{"password"}
		}
		if old := f.Objects[u.GetAPIVersion()+"/providers//"+u.GetName()]; old != nil && u.GetKind() == "Provider" && result.Outcome == v1alpha1.ObjectConfigured {
			result.Keys = []string{"spec.version"}
		}
		result.Conflicts = f.Owned[u.GetName()]
		if why := f.Refusing[u.GetName()]; why != nil {
			result, refused = v1alpha1.PlanObjectResult{Outcome: v1alpha1.ObjectRefused, Error: why}, true
		}
		out.Status.Results = append(out.Status.Results, result)
	}
	for _, ref := range in.Spec.Prune {
		f.Pruned = append(f.Pruned, ref)
		out.Status.Results = append(out.Status.Results, v1alpha1.PlanObjectResult{Outcome: v1alpha1.ObjectPruned})
	}
	f.answer(w, 201, out)
	if in.Spec.Complete && !refused {
		p.Status.UploadedObjects = new(int32(len(f.Uploaded)))
		go f.makePlan(p)
	}
}

// contentsOf returns the summary that the server makes of changes.
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
func (f *Server) watch(w http.ResponseWriter, r *http.Request, ns string) {
	name := strings.TrimPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")
	c := make(chan *v1alpha1.Plan, 100)
	f.Watches = append(f.Watches, c)
	first := f.Plans[ns+"/"+name].DeepCopy()
	f.Mu.Unlock()
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

// Set and touch need f.mu.
func (f *Server) Set(p *v1alpha1.Plan, typ string, ok bool, reason, message string) {
	st := metav1.ConditionFalse
	if ok {
		st = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{Type: typ, Status: st, Reason: reason, Message: message})
	f.Touch(p)
}

// Touch sends a plan to its watches. It needs f.Mu.
func (f *Server) Touch(p *v1alpha1.Plan) {
	f.version++
	p.ResourceVersion = strconv.Itoa(f.version)
	p.APIVersion, p.Kind = "hykube.io/v1alpha1", "Plan"
	for _, w := range f.Watches {
		w <- p.DeepCopy()
	}
}

func (f *Server) makePlan(p *v1alpha1.Plan) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	changes := f.Planning(p)
	f.Changes[p.Namespace+"/"+p.Name] = changes
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
		f.Set(p, v1alpha1.ConditionReady, true, v1alpha1.ReasonNoChanges, "")
	} else if p.Spec.Speculative {
		f.Set(p, v1alpha1.ConditionReady, true, v1alpha1.ReasonSpeculative, "")
	} else {
		f.Set(p, v1alpha1.ConditionReady, false, v1alpha1.ReasonAwaitingApproval, "")
	}
}

// Apply applies an approved plan.
func (f *Server) Apply(p *v1alpha1.Plan) {
	if f.Applying != nil {
		f.Applying(f, p)
		return
	}
	changes := f.Changes[p.Namespace+"/"+p.Name]
	f.Mu.Lock()
	defer f.Mu.Unlock()
	g := &v1alpha1.PlanProgress{Total: int32(len(changes))}
	p.Status.Progress = g
	for i := range changes {
		now := metav1.Now()
		changes[i].State, changes[i].StartedAt = v1alpha1.ChangeRunning, &now
		g.Running = 1
		f.Touch(p)
		changes[i].State, changes[i].FinishedAt = v1alpha1.ChangeDone, new(metav1.NewTime(now.Add(time.Second)))
		g.Running, g.Done = 0, g.Done+1
		f.Touch(p)
	}
	p.Status.FinishedAt = new(metav1.Now())
	// The server writes both at once.
	meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionApplied, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonApplied})
	f.Set(p, v1alpha1.ConditionReady, true, v1alpha1.ReasonApplied, "")
}

// Creates plans a create for each target.
func Creates(p *v1alpha1.Plan) []v1alpha1.PlanChange {
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
