package controller

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/activities/planning"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cron"
	"github.com/hykube/hykube/internal/lang"
)

// TestPagesOfADriftCheck determines how many resources the next plan of a check reads.
func TestPagesOfADriftCheck(t *testing.T) {
	noon := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	for why, tc := range map[string]struct {
		budget *v1alpha1.ReadBudget
		read   int32
		window string
		want   v1alpha1.ReadBudget
	}{
		"no budget":             {nil, 0, "", v1alpha1.ReadBudget{MaxReads: maxPage}},
		"the rest of a budget":  {&v1alpha1.ReadBudget{MaxReads: 12_000}, maxPage, "", v1alpha1.ReadBudget{MaxReads: 2000}},
		"a slow budget":         {&v1alpha1.ReadBudget{ReadsPerSecond: 2}, 0, "", v1alpha1.ReadBudget{MaxReads: 1200, ReadsPerSecond: 2}},
		"the rest of a window":  {&v1alpha1.ReadBudget{ReadsPerSecond: 2}, 0, "09:00-12:01", v1alpha1.ReadBudget{MaxReads: 120, ReadsPerSecond: 2}},
		"a window without rate": {nil, 0, "09:00-12:01", v1alpha1.ReadBudget{MaxReads: maxPage}},
	} {
		window, err := cron.ParseWindow(tc.window, "")
		if err != nil {
			t.Fatal(err)
		}
		d := &driftCheck{stack: &v1alpha1.Stack{Spec: v1alpha1.StackSpec{Drift: &v1alpha1.StackDrift{Budget: tc.budget}}}, now: noon,
			status: &v1alpha1.StackDriftStatus{Running: &v1alpha1.DriftCheck{Read: tc.read}}}
		if got := d.page(window); *got != tc.want {
			t.Errorf("%s: %+v, want %+v", why, *got, tc.want)
		}
	}
}

// TestDriftChecksPause lets checks begin that may not read now.
func TestDriftChecksPause(t *testing.T) {
	noon := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	for why, tc := range map[string]struct {
		spec    v1alpha1.StackSpec
		after   time.Duration
		outcome v1alpha1.DriftOutcome
		zone    string // in the message
	}{
		"outside of the window": {v1alpha1.StackSpec{Drift: &v1alpha1.StackDrift{Window: "22:00-06:00"}}, 10 * time.Hour, "", "UTC"},
		"in a time zone":        {v1alpha1.StackSpec{Drift: &v1alpha1.StackDrift{Window: "22:00-06:00", TimeZone: "Europe/Berlin"}}, 9 * time.Hour, "", "Europe/Berlin"},
		"a window that ends":    {v1alpha1.StackSpec{Drift: &v1alpha1.StackDrift{Window: "09:00-12:01"}}, 20*time.Hour + 59*time.Minute + 5*time.Second, "", "UTC"},
		"suspended":             {v1alpha1.StackSpec{Drift: &v1alpha1.StackDrift{}, Suspend: true}, 0, "", ""},
		"no checks any more":    {v1alpha1.StackSpec{}, 0, v1alpha1.DriftFailed, ""},
	} {
		check := &v1alpha1.DriftCheck{ID: "c", ReadAfter: "sim_network.b", Read: 2}
		now := noon
		if why == "a window that ends" {
			now = noon.Add(55 * time.Second)
		}
		d := &driftCheck{stack: &v1alpha1.Stack{Spec: tc.spec}, now: now, status: &v1alpha1.StackDriftStatus{Running: check}}
		after, err := d.advance(t.Context())
		if err != nil || after != tc.after || check.Message == "" || check.Outcome != tc.outcome || (d.status.Running == nil) != (tc.outcome != "") {
			t.Errorf("%s: after %s, %v, %+v", why, after, err, check)
		}
		if !strings.Contains(check.Message, tc.zone) {
			t.Errorf("%s: the message %q has no time zone %q", why, check.Message, tc.zone)
		}
		if tc.outcome != "" && d.status.ReadAfter != "sim_network.b" {
			t.Errorf("%s: the next check begins after %q", why, d.status.ReadAfter)
		}
	}
}

// TestPlansOfDrift determines who approves the plans of an automatic stack with drift.
func TestPlansOfDrift(t *testing.T) {
	found := []lang.Address{{Type: "sim_disk", Name: "d"}}
	for _, tc := range []struct {
		action  v1alpha1.DriftAction
		drifted []lang.Address
		trigger v1alpha1.PlanTrigger
		want    v1alpha1.ApprovalMode
	}{
		{v1alpha1.DriftPlan, found, v1alpha1.TriggerDrift, v1alpha1.ApprovalManual},
		{v1alpha1.DriftPlan, found, v1alpha1.TriggerChange, v1alpha1.ApprovalManual},
		{v1alpha1.DriftPlan, nil, v1alpha1.TriggerChange, v1alpha1.ApprovalAutomatic},
		{v1alpha1.DriftCorrect, found, v1alpha1.TriggerDrift, v1alpha1.ApprovalAutomatic},
		{v1alpha1.DriftReport, found, v1alpha1.TriggerChange, v1alpha1.ApprovalAutomatic},
	} {
		s := &stackState{stack: &v1alpha1.Stack{Spec: v1alpha1.StackSpec{Drift: &v1alpha1.StackDrift{Action: tc.action}}},
			spec: v1alpha1.PlanSpec{Approval: v1alpha1.ApprovalAutomatic}, selected: &planning.Selection{Drifted: tc.drifted}}
		if got := s.specFor(tc.trigger).Approval; got != tc.want {
			t.Errorf("%+v: %s", tc, got)
		}
	}
}

// TestWantedSchedules finds the Temporal Schedules of a stack.
func TestWantedSchedules(t *testing.T) {
	s := &v1alpha1.Stack{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "web", UID: "u"}}
	s.Spec.Drift = &v1alpha1.StackDrift{}
	if got := wanted(s); len(got) != 0 {
		t.Errorf("without a schedule: %+v", got)
	}
	s.Spec.Drift.Schedule, s.Spec.Plan.Schedule = "@hourly", "@daily"
	before := idsOf([]*v1alpha1.Stack{s})
	if len(before) != 2 || !before["hykube.drift-check.prod.web.u"] || !before["hykube.scheduled-plan.prod.web.u"] {
		t.Errorf("%v", before)
	}
	note := wanted(s)[0].note()
	s.Spec.Suspend = true
	if wanted(s)[0].note() == note {
		t.Error("a suspended stack keeps its Schedule")
	}
}

// TestPlansOfEndedChecks expects the plans of a running check to stay, because the check goes on after the last one.
func TestPlansOfEndedChecks(t *testing.T) {
	check := func(name, uid, request string, trigger v1alpha1.PlanTrigger) *v1alpha1.Plan {
		p := &v1alpha1.Plan{}
		p.Name, p.Status.Stack = name, &v1alpha1.PlanStack{StackUID: types.UID(uid), Trigger: trigger, Request: request}
		return p
	}
	s := &v1alpha1.Stack{}
	s.UID, s.Status.Drift = "web", &v1alpha1.StackDriftStatus{Running: &v1alpha1.DriftCheck{ID: "now"}}
	plans := []*v1alpha1.Plan{
		check("ended", "web", "before", v1alpha1.TriggerDriftCheck), check("running", "web", "now", v1alpha1.TriggerDriftCheck),
		check("of another stack", "db", "before", v1alpha1.TriggerDriftCheck), check("of an edit", "web", "", v1alpha1.TriggerChange), {},
	}
	if got := endedChecks(s, plans); len(got) != 1 || got[0].Name != "ended" {
		t.Errorf("%d plans, want the one of the ended check: %v", len(got), got)
	}
}
