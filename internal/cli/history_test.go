package cli

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
