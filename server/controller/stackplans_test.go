package controller

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
)

// planServer stores the plans that it gets, by name. It refuses all with the status of refuse, unless that is 0.
type planServer struct {
	plans  map[string]*v1alpha1.Plan
	refuse int
}

func (s *planServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	respond := func(code int, v any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(v)
	}
	status := func(code int, reason metav1.StatusReason) {
		respond(code, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Reason: reason, Code: int32(code), Message: "no"})
	}
	if r.Method == http.MethodGet {
		respond(http.StatusOK, s.plans[path.Base(r.URL.Path)])
		return
	}
	p := &v1alpha1.Plan{}
	switch err := json.NewDecoder(r.Body).Decode(p); {
	case err != nil:
		status(http.StatusBadRequest, metav1.StatusReasonBadRequest)
	case s.refuse != 0:
		status(s.refuse, metav1.StatusReasonForbidden)
	case s.plans[p.Name] != nil:
		status(http.StatusConflict, metav1.StatusReasonAlreadyExists)
	default:
		p.UID = types.UID("uid of " + p.Name)
		s.plans[p.Name] = p
		respond(http.StatusCreated, p)
	}
}

func (s *planServer) client(t *testing.T) rest.Interface {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	client, err := rest.RESTClientFor(&rest.Config{Host: server.URL, APIPath: "/apis", ContentConfig: rest.ContentConfig{
		GroupVersion: &v1alpha1.SchemeGroupVersion, NegotiatedSerializer: serializer.NewCodecFactory(scheme).WithoutConversion(),
	}})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// TestPlansAreMadeOnce makes the next plan of a stack, although the cache lacks plans, as after a crash.
func TestPlansAreMadeOnce(t *testing.T) {
	of := func(name string, stack types.UID, number int64) *v1alpha1.Plan {
		p := &v1alpha1.Plan{TypeMeta: metav1.TypeMeta{Kind: "Plan", APIVersion: v1alpha1.SchemeGroupVersion.String()}, ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "prod", UID: types.UID("uid of " + name)}}
		if stack != "" {
			p.Status.Stack = &v1alpha1.PlanStack{Stack: "web", StackUID: stack, Number: number, Contents: "old"}
		}
		return p
	}
	for why, tc := range map[string]struct {
		stored, cached []*v1alpha1.Plan
		last           *v1alpha1.StackPlan
		refuse         int
		want           string // the last plan, or else the reason why there is none
		made           bool
	}{
		"the first one":                     {want: "web-1", made: true},
		"the next one":                      {stored: []*v1alpha1.Plan{of("web-1", "u", 1)}, cached: []*v1alpha1.Plan{of("web-1", "u", 1)}, last: &v1alpha1.StackPlan{PlanStack: v1alpha1.PlanStack{Number: 1}}, want: "web-2", made: true},
		"the last one is removed":           {last: &v1alpha1.StackPlan{PlanStack: v1alpha1.PlanStack{Number: 7}}, want: "web-8", made: true},
		"made before a crash":               {stored: []*v1alpha1.Plan{of("web-1", "u", 1)}, want: "web-1"},
		"a user's plan has the name":        {stored: []*v1alpha1.Plan{of("web-1", "", 0)}, want: "web-2", made: true},
		"a former stack of the name":        {stored: []*v1alpha1.Plan{of("web-1", "former", 1), of("web-2", "former", 2)}, cached: []*v1alpha1.Plan{of("web-2", "former", 2)}, want: "web-3", made: true},
		"a former one that is not seen yet": {stored: []*v1alpha1.Plan{of("web-1", "former", 1)}, want: "web-2", made: true},
		"the server refuses it":             {refuse: http.StatusForbidden, want: v1alpha1.ReasonPlanFailed},
	} {
		t.Run(why, func(t *testing.T) {
			server := &planServer{plans: map[string]*v1alpha1.Plan{}, refuse: tc.refuse}
			for _, p := range tc.stored {
				server.plans[p.Name] = p
			}
			plans := &Plans{informer: cache.NewSharedIndexInformer(&cache.ListWatch{}, &v1alpha1.Plan{}, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})}
			for _, p := range tc.cached {
				if err := plans.informer.GetIndexer().Add(p); err != nil {
					t.Fatal(err)
				}
			}
			c := NewStacks(StacksConfig{Client: server.client(t), Logger: slog.New(slog.DiscardHandler)})
			c.plans = plans
			state := stackWith()
			state.last = tc.last
			state.stack.Status.Author = &v1alpha1.Identity{Username: "ann", Groups: []string{"ops"}}
			step := state.decide()
			before := len(server.plans)
			if err := c.makePlan(t.Context(), state, &step); err != nil {
				t.Fatal(err)
			}
			if made := len(server.plans) > before; made != tc.made {
				t.Errorf("made a plan: %t", made)
			}
			if !strings.HasPrefix(tc.want, "web") {
				if step.reason != tc.want {
					t.Errorf("the reason is %s", step.reason)
				}
				return
			}
			if state.last == nil || state.last.Name != tc.want {
				t.Fatalf("the last plan is %+v, want %s", state.last, tc.want)
			}
			p := server.plans[tc.want]
			if tc.made && (p.Status.RequestedBy.Username != "ann" || p.Status.Stack.Contents != "new" || p.Status.Stack.StackUID != "u" || !metav1.IsControlledBy(p, state.stack)) {
				t.Errorf("%+v", p)
			}
		})
	}
}

// TestAStackThatMakesManyPlansPauses counts the plans of a stack whose own applies change what it selects. The pause grows
// up to ten minutes, and ends when the plans are long ago.
func TestAStackThatMakesManyPlansPauses(t *testing.T) {
	for n, want := range map[int]time.Duration{plansAtOnce - 1: 0, plansAtOnce: firstPause, plansAtOnce + 2: 4 * firstPause, plansAtOnce + 20: countedFor} {
		c, state := &Stacks{seen: map[types.UID]seenContents{}}, stackWith()
		for range n + 1 { // the first one follows from an edit
			c.noteMade(state, &stackStep{})
		}
		if got := max(0, c.notBefore(state).Sub(state.now)); got != want {
			t.Errorf("after %d plans: %s, want %s", n, got, want)
		}
		state.now = state.now.Add(countedFor + time.Second)
		if !c.notBefore(state).Before(state.now) {
			t.Errorf("after %d plans: it still pauses when they are long ago", n)
		}
	}
}

// TestOnlyPlansWithoutAnEditPause makes plans for different reasons until the stack pauses. A plan that does not count does not
// wait either, even if the stack pauses.
func TestOnlyPlansWithoutAnEditPause(t *testing.T) {
	for why, tc := range map[string]struct {
		next   stackPlan
		change func(s *stackState, n int)
		counts bool
	}{
		"new values of outputs":       {change: func(s *stackState, n int) { s.selected.Contents = fmt.Sprint("outputs ", n) }, counts: true},
		"plans that are stale":        {change: func(*stackState, int) {}, counts: true},
		"edits, or provider upgrades": {change: func(s *stackState, n int) { s.selected.Written = fmt.Sprint("edit ", n) }},
		"writes of the stack":         {change: func(s *stackState, n int) { s.stack.Generation = int64(n + 10) }},
		"retries":                     {next: stackPlan{attempt: 1}, change: func(*stackState, int) {}},
		"drift":                       {next: stackPlan{trigger: v1alpha1.TriggerDrift}, change: func(*stackState, int) {}},
		"a schedule":                  {next: stackPlan{trigger: v1alpha1.TriggerSchedule}, change: func(*stackState, int) {}},
		"runs that edit the objects": {change: func(s *stackState, n int) {
			withWorkflow(s)
			s.selected.Written = fmt.Sprint("run ", n)
		}, counts: true},
	} {
		next := func(c *Stacks, s *stackState, n int) stackStep {
			tc.change(s, n)
			s.notBefore = c.notBefore(s)
			return s.next(tc.next)
		}
		c, s := &Stacks{seen: map[types.UID]seenContents{}}, stackWith()
		c.noteMade(s, &stackStep{})
		for n := range 2 * plansAtOnce {
			if step := next(c, s, n); step.make {
				c.noteMade(s, &step)
			}
		}
		if step := next(c, s, 2*plansAtOnce); step.make == tc.counts || tc.counts && step.after != firstPause {
			t.Errorf("%s: the step after many plans is %+v", why, step)
		}
		c, s = &Stacks{seen: map[types.UID]seenContents{}}, stackWith()
		for range 2 * plansAtOnce {
			c.noteMade(s, &stackStep{})
		}
		if step := next(c, s, 1); step.make == tc.counts {
			t.Errorf("%s: the step of a stack that pauses is %+v", why, step)
		}
	}
}

// TestPlansNameWhoRequestedTheCheck makes plans of drift checks. A plan has the rights of the author of the stack, so it
// names the user who requested the check, too.
func TestPlansNameWhoRequestedTheCheck(t *testing.T) {
	server := &planServer{plans: map[string]*v1alpha1.Plan{}}
	c := NewStacks(StacksConfig{Client: server.client(t), Logger: slog.New(slog.DiscardHandler)})
	state := stackWith()
	s := state.stack
	s.Status.Author = &v1alpha1.Identity{Username: "ann"}
	s.Status.Drift = &v1alpha1.StackDriftStatus{Requested: &v1alpha1.StackRequest{ID: "check", By: &v1alpha1.Identity{Username: "eve"}}}
	for request, want := range map[string]string{"check": "eve", "earlier": "", "": ""} {
		p := &v1alpha1.Plan{}
		p.Name = "web-drift-" + request + "x"
		p.Status.Stack = &v1alpha1.PlanStack{Trigger: v1alpha1.TriggerDriftCheck, Request: request}
		made, err := c.create(t.Context(), s, p)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if by := made.Status.Stack.CheckRequestedBy; by != nil {
			got = by.Username
		}
		if got != want || made.Status.RequestedBy.Username != "ann" {
			t.Errorf("%q: requested by %q, want %q; with the rights of %s", request, got, want, made.Status.RequestedBy.Username)
		}
	}
}

// TestTheAuthorIsApprovedWithAPlan finds the generation of a stack of which another user than the author approved a plan that was
// applied as a whole. Later plans say so until the author writes the stack again.
func TestTheAuthorIsApprovedWithAPlan(t *testing.T) {
	for why, tc := range map[string]struct {
		by               string
		itself, partial  bool
		failed           bool
		planned, written int64
		want             bool
	}{
		"another user approved it":                {by: "bob", planned: 3, written: 3, want: true},
		"it was suspended meanwhile":              {by: "bob", planned: 4, written: 3, want: true},
		"the author wrote the stack again":        {by: "bob", planned: 3, written: 4},
		"the author approved it":                  {by: "ann", planned: 3, written: 3},
		"it approved itself":                      {by: "bob", itself: true, planned: 3, written: 3},
		"a part was approved":                     {by: "bob", partial: true, planned: 3, written: 3},
		"a change failed":                         {by: "bob", failed: true, planned: 3, written: 3},
		"the server does not know what was wrote": {by: "bob", planned: 3},
	} {
		p := &v1alpha1.Plan{}
		p.Status.Stack, p.Status.RequestedBy = &v1alpha1.PlanStack{StackGeneration: tc.planned}, &v1alpha1.Identity{Username: "ann"}
		p.Status.Approval = &v1alpha1.PlanApproval{Decision: v1alpha1.DecisionApproved, By: &v1alpha1.Identity{Username: tc.by}, Partial: tc.partial}
		reason := v1alpha1.ReasonApproved
		if tc.itself {
			reason = v1alpha1.ReasonAutomatic
		}
		condition.Set(&p.Status.Conditions, 1, v1alpha1.ConditionApproved, true, reason, "")
		condition.Set(&p.Status.Conditions, 1, v1alpha1.ConditionApplied, !tc.failed, "Applied", "")
		state := stackWith()
		state.plan, state.last = p, snapshot(p)
		status := state.stack.Status.DeepCopy()
		status.AuthorGeneration, status.Author = tc.written, p.Status.RequestedBy
		state.write(status, state.decide())
		state.stack.Status = *status
		server := &planServer{plans: map[string]*v1alpha1.Plan{}}
		c := NewStacks(StacksConfig{Client: server.client(t), Logger: slog.New(slog.DiscardHandler)})
		next := &v1alpha1.Plan{}
		next.Name, next.Status.Stack = "web-9", &v1alpha1.PlanStack{Number: 9}
		made, err := c.create(t.Context(), state.stack, next)
		if err != nil {
			t.Fatal(err)
		}
		if made.Status.Stack.AuthorApproved != tc.want {
			t.Errorf("%s: the author is approved: %t, want %t", why, !tc.want, tc.want)
		}
	}
}
