package controller

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/workflows"
)

// planMap holds Plans by name.
type planMap struct {
	store.Plans
	plans map[string]*v1alpha1.Plan
}

func (m planMap) Get(_ context.Context, _, name string, _ types.UID) (*v1alpha1.Plan, error) {
	return m.plans[name], nil
}

func (m planMap) UpdateStatus(_ context.Context, _, name string, _ types.UID, update func(*v1alpha1.PlanStatus)) error {
	update(&m.plans[name].Status)
	return nil
}

// runLog records the workflows that are started, as WORKFLOW ID of FAIRNESS KEY, and the signals, as WORKFLOW ID SIGNAL.
type runLog struct {
	client.Client
	runs, signals []string
	attributes    temporal.SearchAttributes // of the last run
}

func (r *runLog) ExecuteWorkflow(_ context.Context, o client.StartWorkflowOptions, _ any, _ ...any) (client.WorkflowRun, error) {
	r.runs, r.attributes = append(r.runs, fmt.Sprintf("%s of %s", o.ID, o.Priority.FairnessKey)), o.TypedSearchAttributes
	return nil, nil
}

func (r *runLog) SignalWorkflow(_ context.Context, id, _, signal string, _ any) error {
	r.signals = append(r.signals, id+" "+signal)
	return nil
}

// planRuns is a controller with four running plans at most, over Plans in memory.
type planRuns struct {
	*Plans
	t    *testing.T
	log  *runLog
	objs planMap
}

func newPlanRuns(t *testing.T) planRuns {
	r := planRuns{t: t, log: &runLog{}, objs: planMap{plans: map[string]*v1alpha1.Plan{}}}
	r.Plans = &Plans{Status: r.objs, Temporal: r.log, Logger: slog.New(slog.DiscardHandler), MaxRunning: 4,
		Terminating: func(_ context.Context, namespace string) (bool, error) { return namespace == "leaving", nil }}
	r.start()
	t.Cleanup(r.queue.work.ShutDown)
	return r
}

// see reconciles a plan after a change of its status.
func (r planRuns) see(namespace, name string, change func(*v1alpha1.PlanStatus)) {
	r.t.Helper()
	po := r.objs.plans[name]
	if po == nil {
		po = &v1alpha1.Plan{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(time.Now().Add(time.Minute))}}
		r.objs.plans[name] = po
	}
	if change != nil {
		change(&po.Status)
	}
	if err := r.informer.GetIndexer().Add(po.DeepCopy()); err != nil {
		r.t.Fatal(err)
	}
	if err := r.reconcile(r.t.Context(), cache.ObjectName{Namespace: namespace, Name: name}); err != nil {
		r.t.Fatal(err)
	}
}

func (r planRuns) started(name string) bool {
	return slices.ContainsFunc(r.log.runs, func(run string) bool {
		po := r.objs.plans[name]
		return run == fmt.Sprintf("plan.%s.%s.%s of %s", po.Namespace, name, name, po.Namespace)
	})
}

func (r planRuns) reason(name string) string {
	c := meta.FindStatusCondition(r.objs.plans[name].Status.Conditions, v1alpha1.ConditionReconciling)
	if c == nil {
		return ""
	}
	return c.Reason
}

// TestRunsCanBeFoundByTheirRequester expects a name that Temporal's databases store.
func TestRunsCanBeFoundByTheirRequester(t *testing.T) {
	r := newPlanRuns(t)
	for name, by := range map[string]string{"short": "alice", "long": strings.Repeat("ä", 300)} {
		r.see("prod", name, func(s *v1alpha1.PlanStatus) { s.RequestedBy = &v1alpha1.Identity{Username: by} })
		got, ok := r.log.attributes.GetKeyword(temporal.NewSearchAttributeKeyKeyword(workflows.SearchRequester))
		if !ok || got == "" || !strings.HasPrefix(by, got) || len(got) > 255 {
			t.Errorf("the requester %q is found by %q", by, got)
		}
		if plan, _ := r.log.attributes.GetKeyword(temporal.NewSearchAttributeKeyKeyword(workflows.SearchPlan)); plan != name {
			t.Errorf("the plan %q is found by %q", name, plan)
		}
	}
}

// TestPlansOfOneNamespaceLeaveRoomForOthers starts plans that never end.
func TestPlansOfOneNamespaceLeaveRoomForOthers(t *testing.T) {
	r := newPlanRuns(t)
	for _, name := range []string{"a1", "a2", "a3", "a4"} {
		r.see("hog", name, nil)
	}
	if !r.started("a3") || r.started("a4") || r.reason("a4") != v1alpha1.ReasonQueued {
		t.Fatalf("runs %v, the fourth plan has the reason %q; want three runs and Queued", r.log.runs, r.reason("a4"))
	}
	r.see("quiet", "b1", nil)
	if !r.started("b1") {
		t.Errorf("runs %v: the plan of a namespace without a running plan has to wait", r.log.runs)
	}
	r.see("quiet", "b2", nil)
	if r.started("b2") {
		t.Errorf("runs %v, more than four at once", r.log.runs)
	}

	// The end of a plan starts the next one, of the namespace with the fewest.
	r.see("hog", "a1", func(s *v1alpha1.PlanStatus) { s.FinishedAt = new(metav1.Now()) })
	for deadline := time.Now().Add(5 * time.Second); r.queue.work.Len() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the end of a plan started no other")
		}
	}
	name, _ := r.queue.work.Get()
	if want := (cache.ObjectName{Namespace: "quiet", Name: "b2"}); name != want {
		t.Fatalf("%v is next, want %v", name, want)
	}
	r.see("quiet", "b2", nil)
	if !r.started("b2") || r.reason("b2") != v1alpha1.ReasonPlanning {
		t.Errorf("runs %v, reason %q; want the run of b2", r.log.runs, r.reason("b2"))
	}
}

// TestACancelledPlanNeedsNoSlot cancels a plan that waits, and one that was deleted leaves the queue.
func TestACancelledPlanNeedsNoSlot(t *testing.T) {
	r := newPlanRuns(t)
	for _, name := range []string{"a1", "a2", "a3", "a4", "a5"} {
		r.see("hog", name, nil)
	}
	r.see("hog", "a4", func(s *v1alpha1.PlanStatus) { s.Cancel = &v1alpha1.PlanCancel{} })
	if !r.started("a4") {
		t.Errorf("runs %v: nothing ends the cancelled plan", r.log.runs)
	}
	deleted := r.objs.plans["a5"]
	if err := r.informer.GetIndexer().Delete(deleted); err != nil {
		t.Fatal(err)
	}
	if err := r.reconcile(t.Context(), cache.ObjectName{Namespace: "hog", Name: "a5"}); err != nil {
		t.Fatal(err)
	}
	if got := r.making.Waiting(); got != 1 {
		t.Errorf("%d requests wait, want that of the cancelled plan alone", got)
	}
}

// TestANamespaceMakesAFewPlansAtOnce starts plans of a namespace that never end. Only a few of them run, and the
// applies of its approved plans do not count among these.
func TestANamespaceMakesAFewPlansAtOnce(t *testing.T) {
	r := newPlanRuns(t)
	r.NamespacePlans = 2
	r.start()
	t.Cleanup(r.queue.work.ShutDown)
	for _, name := range []string{"a1", "a2", "a3"} {
		r.see("hog", name, nil)
	}
	if !r.started("a2") || r.started("a3") || r.reason("a3") != v1alpha1.ReasonQueued {
		t.Errorf("runs %v, the third plan has the reason %q; want two runs and Queued", r.log.runs, r.reason("a3"))
	}
	for _, name := range []string{"b1", "b2", "b3"} {
		r.see("hog", name, approved)
		if want := fmt.Sprintf("apply.hog.%s.%s of hog", name, name); !slices.Contains(r.log.runs, want) {
			t.Errorf("runs %v, want %s", r.log.runs, want)
		}
	}
}

// TestAnApplyLeavesRoomForPlans approves plans as soon as they are made. Their applies, which never end, keep no slot
// of a plan that is made.
func TestAnApplyLeavesRoomForPlans(t *testing.T) {
	r := newPlanRuns(t)
	for _, name := range []string{"a1", "a2", "a3"} {
		r.see("hog", name, nil)
		r.see("hog", name, approved)
	}
	r.see("hog", "a4", nil)
	if !r.started("a4") {
		t.Errorf("runs %v: the applies keep the next plan from being made", r.log.runs)
	}
}

// TestABegunApplyContinuesAfterARestart restarts the server while plans are applied. The slots go to others first.
func TestABegunApplyContinuesAfterARestart(t *testing.T) {
	r := newPlanRuns(t)
	for _, name := range []string{"a1", "a2", "a3", "a4"} {
		r.see("hog", name, approved)
	}
	for name, reason := range map[string]string{"b1": v1alpha1.ReasonApplying, "b2": v1alpha1.ReasonRolloutPaused, "b3": v1alpha1.ReasonApproved} {
		r.see("hog", name, func(s *v1alpha1.PlanStatus) {
			approved(s)
			condition.Set(&s.Conditions, 1, v1alpha1.ConditionReady, false, reason, "")
		})
		got := slices.Contains(r.log.runs, fmt.Sprintf("apply.hog.%s.%s of hog", name, name))
		if want := reason != v1alpha1.ReasonApproved; got != want || (r.reason(name) == v1alpha1.ReasonQueued) == want {
			t.Errorf("a plan with the reason %s: continues %t, reason %q", reason, got, r.reason(name))
		}
	}
}

// rollsOut returns a change of a plan's status to one whose rollout pauses until a time; nil if it does not pause.
func rollsOut(until *metav1.Time) func(*v1alpha1.PlanStatus) {
	return func(s *v1alpha1.PlanStatus) {
		approved(s)
		s.Rollouts, s.Progress = []v1alpha1.PlanRollout{{ResourceSet: "web"}}, &v1alpha1.PlanProgress{}
		reason := v1alpha1.ReasonApplying
		if s.PausedUntil = until; until != nil {
			reason = v1alpha1.ReasonRolloutPaused
		}
		condition.Reconciling(&s.Conditions, 1, reason, "")
	}
}

// TestAPausedApplyHoldsNoSlot pauses applies that hold all slots. Others get these, and the paused ones wait for their turn.
func TestAPausedApplyHoldsNoSlot(t *testing.T) {
	r := newPlanRuns(t)
	hour, past := new(metav1.NewTime(time.Now().Add(time.Hour))), new(metav1.NewTime(time.Now().Add(-time.Minute)))
	for _, name := range []string{"a1", "a2", "a3"} {
		r.see("hog", name, func(s *v1alpha1.PlanStatus) {
			rollsOut(nil)(s)
			s.Progress = nil // it has not begun
		})
		r.see("hog", name, rollsOut(nil))
	}
	r.see("hog", "a4", approved)
	if got := r.reason("a4"); got != v1alpha1.ReasonQueued {
		t.Fatalf("the fourth apply has the reason %q, want Queued", got)
	}
	r.see("hog", "a1", rollsOut(hour))
	r.see("hog", "a4", nil)
	if want := "apply.hog.a4.a4 of hog"; !slices.Contains(r.log.runs, want) {
		t.Fatalf("runs %v, want %s in the slot of the paused apply", r.log.runs, want)
	}
	r.see("hog", "a1", rollsOut(past))
	if got := r.reason("a1"); got != v1alpha1.ReasonQueued || len(r.log.signals) > 0 {
		t.Errorf("after its pause, the reason is %q and the signals are %v; want Queued until a slot is free", got, r.log.signals)
	}
	r.see("hog", "a2", func(s *v1alpha1.PlanStatus) { s.FinishedAt = new(metav1.Now()) })
	r.see("hog", "a1", nil)
	if po := r.objs.plans["a1"]; po.Status.PausedUntil != nil || r.reason("a1") != v1alpha1.ReasonApplying {
		t.Errorf("with a free slot, it pauses until %v and the reason is %q; want Applying", po.Status.PausedUntil, r.reason("a1"))
	}
	r.see("hog", "a1", nil) // the controller sees its own write
	if want := []string{"apply.hog.a1.a1 resume"}; !slices.Equal(r.log.signals, want) {
		t.Errorf("signals %v, want %v", r.log.signals, want)
	}
	r.see("hog", "a1", rollsOut(past)) // the next wave has ended, too
	if got := len(r.log.signals); got != 2 {
		t.Errorf("%d signals after two pauses, want 2", got)
	}
}

// TestADeletedNamespaceEndsAPause deletes the namespace of a plan that pauses.
func TestADeletedNamespaceEndsAPause(t *testing.T) {
	r := newPlanRuns(t)
	var requests []string
	r.Client = putClient(t, &requests)
	for _, namespace := range []string{"leaving", "kept"} {
		r.see(namespace, namespace+"-plan", rollsOut(new(metav1.NewTime(time.Now().Add(time.Hour)))))
	}
	if want := []string{"PUT /hykube.io/v1alpha1/namespaces/leaving/plans/leaving-plan/cancel"}; !slices.Equal(requests, want) {
		t.Errorf("requests %v, want %v", requests, want)
	}
}

// putClient returns a client whose server records the requests.
func putClient(t *testing.T, requests *[]string) rest.Interface {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		*requests = append(*requests, req.Method+" "+req.URL.Path)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"Plan","apiVersion":"hykube.io/v1alpha1"}`))
	}))
	t.Cleanup(s.Close)
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := rest.UnversionedRESTClientFor(&rest.Config{Host: s.URL, ContentConfig: rest.ContentConfig{
		GroupVersion: &v1alpha1.SchemeGroupVersion, NegotiatedSerializer: serializer.NewCodecFactory(scheme).WithoutConversion()}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestARestartResumesAnApply restarts the server after it ended a pause, perhaps before it sent the signal.
func TestARestartResumesAnApply(t *testing.T) {
	r := newPlanRuns(t)
	r.see("hog", "a1", rollsOut(nil))
	if want := []string{"apply.hog.a1.a1 resume"}; !slices.Equal(r.log.signals, want) {
		t.Errorf("signals %v, want %v", r.log.signals, want)
	}
}

// TestACancelEndsAPause cancels a plan in its pause.
func TestACancelEndsAPause(t *testing.T) {
	r := newPlanRuns(t)
	r.see("hog", "a1", rollsOut(new(metav1.NewTime(time.Now().Add(time.Hour)))))
	r.see("hog", "a1", func(s *v1alpha1.PlanStatus) { s.Cancel = &v1alpha1.PlanCancel{} })
	if want := []string{"apply.hog.a1.a1 cancel"}; !slices.Equal(r.log.signals, want) {
		t.Errorf("signals %v, want %v", r.log.signals, want)
	}
}

func approved(s *v1alpha1.PlanStatus) {
	condition.Set(&s.Conditions, 1, v1alpha1.ConditionPlanned, true, v1alpha1.ReasonPlanned, "")
	condition.Set(&s.Conditions, 1, v1alpha1.ConditionApproved, true, v1alpha1.ReasonApproved, "")
}
