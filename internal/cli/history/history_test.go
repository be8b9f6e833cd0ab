package history

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
)

// Times of records have only seconds. The records arrive in the order of their names.
func TestRecordsOfOneSecondAreNewestFirst(t *testing.T) {
	at := time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)
	record := func(name, revision string, at time.Time) v1alpha1.PlanRecord {
		r := v1alpha1.PlanRecord{Approval: v1alpha1.PlanApproval{At: new(metav1.NewTime(at))}}
		r.Name, r.ResourceVersion = name, revision
		return r
	}
	records := []v1alpha1.PlanRecord{record("first", "98", at), record("later", "7", at.Add(time.Second)), record("second", "100", at), record("third", "102", at)}
	slices.SortStableFunc(records, newerRecord)
	var got []string
	for _, r := range records {
		got = append(got, r.Name)
	}
	if d := cmp.Diff([]string{"later", "third", "second", "first"}, got); d != "" {
		t.Error(d)
	}
}

func TestPartsOfAPlan(t *testing.T) {
	r := &v1alpha1.PlanRecord{Outcome: v1alpha1.ReasonAppliedInPart, Progress: &v1alpha1.PlanProgress{Total: 3, Done: 3, Blocked: 4}}
	if got := recordOutcome(r); got != "AppliedInPart (3 of 7 made, 4 blocked)" {
		t.Errorf("a record says %q", got)
	}
	r = &v1alpha1.PlanRecord{Outcome: v1alpha1.ReasonStale, Progress: &v1alpha1.PlanProgress{Total: 2, Done: 1}}
	if got := recordOutcome(r); got != "Stale (1 of 2 made)" {
		t.Errorf("a record says %q", got)
	}
	r.Progress.Done = 0
	if got := recordOutcome(&v1alpha1.PlanRecord{Outcome: v1alpha1.ReasonStale, Progress: &v1alpha1.PlanProgress{Total: 3, Done: 2, Failed: 1}}); got != "Stale (2 of 3 made, 1 stale)" {
		t.Errorf("outcome %q", got)
	}
	if got := recordOutcome(r); got != "Stale" {
		t.Errorf("a record says %q", got)
	}
}
