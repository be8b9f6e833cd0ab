package activities

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hykube/hykube/workflows"
)

// unreported drops the progress of a lane.
func unreported(context.Context, workflows.Progress) error { return nil }

// TestALaneReportsItsProgress applies 230 changes of which 25 fail. The reports are few, and have no text of the provider.
func TestALaneReportsItsProgress(t *testing.T) {
	const things, fail = 230, 25
	sc := newCrashScenario(t)
	for i := range things {
		name := fmt.Sprintf("t%03d", i)
		sc.put("test-thing/"+name, m{"name": name}, nil)
		if i < fail {
			sc.cloud.faults["create "+name] = []string{"says the password is hunter2"}
		}
	}
	run := sc.newRun()
	sc.until(run, stepping)
	var reports []workflows.Progress
	report := func(_ context.Context, p workflows.Progress) error {
		reports = append(reports, p)
		return nil
	}
	if _, err := sc.applier.Lane(t.Context(), run.Plan, report); err != nil {
		t.Fatal(err)
	}
	if n := len(reports); n == 0 || n > workflows.MaxNotMade+things/100 {
		t.Fatalf("%d reports, want one for each of the first %d failed changes and each hundred changes at most", n, workflows.MaxNotMade)
	}
	if !slices.IsSortedFunc(reports, func(a, b workflows.Progress) int { return a.Done + a.Failed - b.Done - b.Failed }) {
		t.Error("the reports are not in order")
	}
	last := reports[len(reports)-1]
	if last.Total != things || last.Done+last.Failed < things-100 || last.Failed < workflows.MaxNotMade {
		t.Errorf("the last report has %d done and %d failed of %d", last.Done, last.Failed, last.Total)
	}

	// A lane that a restart begins anew does not report again what was reported.
	reports = nil
	if _, err := sc.applier.Lane(t.Context(), run.Plan, report); err != nil || len(reports) > 0 {
		t.Errorf("a later lane reports %+v, %v", reports, err)
	}

	finished, err := sc.applier.Finish(t.Context(), workflows.Finish{Plan: run.Plan})
	if err != nil || finished.Failed != fail {
		t.Fatalf("finished %+v, %v; want %d failed", finished, err, fail)
	}
	for what, list := range map[string][]workflows.NotMade{"the last report": last.NotMade, "the result": finished.NotMade} {
		if len(list) != workflows.MaxNotMade {
			t.Errorf("%s names %d changes, want %d", what, len(list), workflows.MaxNotMade)
		}
		for _, n := range list {
			if !strings.HasPrefix(n.Change, "create test_thing.t0") || n.Why != "Failed" {
				t.Errorf("%s has %+v", what, n)
			}
		}
	}
}
