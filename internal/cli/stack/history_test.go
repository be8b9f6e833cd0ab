package stack_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/tests/clitest"
)

// historyWorld is a stack web, which selects sim-network/main, at noon.
type historyWorld struct {
	*clitest.Server
	noon time.Time
}

func newHistoryWorld(t *testing.T) historyWorld {
	w := historyWorld{clitest.New(t, cli.Command), time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)}
	s := &v1alpha1.Stack{}
	s.Name, s.Namespace, s.UID, s.Generation, s.CreationTimestamp = "web", "default", "of-web", 1, metav1.NewTime(w.noon)
	s.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"stack": "web"}}
	w.PutStack(s)
	for name, label := range map[string]string{"main": "web", "other": "shop"} {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "sim.hykube.io/v1", "kind": "sim-network"}}
		u.SetName(name)
		u.SetNamespace("default")
		u.SetLabels(map[string]string{"stack": label})
		w.Put(u, "sim-networks")
	}
	return w
}

// applied adds a plan that was applied some minutes after noon, and its record with the outcomes of changes.
func (w historyWorld) applied(name string, minute int, by string, changes map[string]v1alpha1.ChangeState, edit ...func(*v1alpha1.Plan)) {
	w.T.Helper()
	p := &v1alpha1.Plan{}
	p.Name, p.Namespace, p.UID = name, "default", types.UID("uid-"+name)
	p.CreationTimestamp = metav1.NewTime(w.noon.Add(time.Duration(minute) * time.Minute))
	p.Status.FinishedAt = new(metav1.NewTime(p.CreationTimestamp.Add(time.Second)))
	p.Status.RequestedBy = &v1alpha1.Identity{Username: by}
	p.Status.Approval = &v1alpha1.PlanApproval{Decision: v1alpha1.DecisionApproved, By: p.Status.RequestedBy}
	p.Status.Progress = &v1alpha1.PlanProgress{Done: int32(len(changes))}
	condition.Ready(&p.Status.Conditions, 0, v1alpha1.ReasonApplied, "Applied.")
	for _, e := range edit {
		e(p)
	}
	w.Plans["default/"+p.Name] = p
	if p.Status.Approval == nil {
		return
	}
	r := &v1alpha1.PlanRecord{Plan: v1alpha1.PlanReference{Name: name, UID: p.UID}, Approval: *p.Status.Approval}
	r.APIVersion, r.Kind, r.Name, r.Namespace = v1alpha1.SchemeGroupVersion.String(), "PlanRecord", name, "default"
	for address, outcome := range changes {
		r.Changes = append(r.Changes, v1alpha1.PlanRecordChange{Address: address, Outcome: outcome})
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(r)
	if err != nil {
		w.T.Fatal(err)
	}
	w.Put(&unstructured.Unstructured{Object: object}, "planrecords")
}

func ofStack(number int64) func(*v1alpha1.Plan) {
	return func(p *v1alpha1.Plan) {
		p.Status.Stack = &v1alpha1.PlanStack{Stack: "web", StackUID: "of-web", Number: number}
	}
}

// TestHistoryHasPlansOfUsers lists the plans of a stack, and those of users that changed its resources.
func TestHistoryHasPlansOfUsers(t *testing.T) {
	w := newHistoryWorld(t)
	done := func(address string) map[string]v1alpha1.ChangeState {
		return map[string]v1alpha1.ChangeState{address: v1alpha1.ChangeDone}
	}
	w.applied("before", -5, "eve", done("sim_network.main")) // before the stack was created
	w.applied("web-1", 1, "ann", done("sim_network.gone"), ofStack(1))
	w.applied("of-eve", 2, "eve", done("sim_network.main"))
	w.applied("destroys", 3, "eve", done("sim_network.gone"))
	w.applied("elsewhere", 4, "eve", done("sim_network.other"))
	w.applied("not-tried", 5, "eve", map[string]v1alpha1.ChangeState{"sim_network.main": v1alpha1.ChangeSkipped})
	w.applied("web-2", 6, "ann", nil, ofStack(2), func(p *v1alpha1.Plan) {
		p.Status.Approval, p.Status.Progress = nil, nil
		p.Status.Conditions = nil
		condition.Stalled(&p.Status.Conditions, 0, v1alpha1.ReasonDiscarded, "Discarded by the server.")
	})
	out, errOut, code := w.Run("stack", "history", "web", "-o", "name")
	var want string
	for _, name := range []string{"web-2", "destroys", "of-eve", "web-1"} {
		want += fmt.Sprintf("plan.hykube.io/%s\n", name)
	}
	if code != 0 || out != want {
		t.Errorf("exit code %d, %s\n%s, want\n%s", code, errOut, out, want)
	}
	table, _, _ := w.Run("stack", "history", "web")
	for name, state := range map[string]string{"web-2": "discarded", "of-eve": "applied (not a plan of the stack)", "web-1": "applied"} {
		found := false
		for line := range strings.Lines(table) {
			found = found || strings.Contains(line, " "+name+" ") && strings.HasSuffix(line, "   "+state+"\n")
		}
		if !found {
			t.Errorf("%s is not %q in\n%s", name, state, table)
		}
	}
	status, _, code := w.Run("stack", "status", "web")
	if code != 0 || !strings.Contains(status, "destroys") || strings.Contains(status, "of-eve") {
		t.Errorf("exit code %d:\n%s", code, status)
	}
	if _, errOut, code := w.Run("stack", "history", "web", "--at", "of-eve"); code != 0 {
		t.Errorf("exit code %d: %s", code, errOut)
	}
	if _, errOut, code := w.Run("stack", "history", "web", "--at", "elsewhere"); code != 1 {
		t.Errorf("exit code %d: %s", code, errOut)
	}
}

// TestHistoryWithoutRecords lists the plans of a stack for a user who may not read records.
func TestHistoryWithoutRecords(t *testing.T) {
	w := newHistoryWorld(t)
	w.applied("web-1", 1, "ann", nil, ofStack(1))
	w.applied("of-eve", 2, "eve", map[string]v1alpha1.ChangeState{"sim_network.main": v1alpha1.ChangeDone})
	w.Refuse = refuseRecords
	out, errOut, code := w.Run("stack", "history", "web", "-o", "name")
	if code != 0 || out != "plan.hykube.io/web-1\n" || !strings.Contains(errOut, "PlanRecords") {
		t.Errorf("exit code %d: %s\n%s", code, errOut, out)
	}
}

func refuseRecords(r *http.Request) *metav1.Status {
	if strings.HasSuffix(r.URL.Path, "/planrecords") {
		return clitest.Status(http.StatusForbidden, metav1.StatusReasonForbidden, "no")
	}
	return nil
}
