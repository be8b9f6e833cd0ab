package condition

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
)

// TestOneStateAtATime follows an object through its life: kstatus takes the abnormal-true conditions at their word, so
// that one which is left behind would say that a finished object still moves.
func TestOneStateAtATime(t *testing.T) {
	var conditions []metav1.Condition
	for _, step := range []struct {
		name string
		set  func(*[]metav1.Condition, int64, string, string)
		want map[string]metav1.ConditionStatus
	}{
		{"work begins", Reconciling, map[string]metav1.ConditionStatus{v1alpha1.ConditionReady: "False", v1alpha1.ConditionReconciling: "True"}},
		{"it gets stuck", Stalled, map[string]metav1.ConditionStatus{v1alpha1.ConditionReady: "False", v1alpha1.ConditionStalled: "True"}},
		{"an apply runs", Reconciling, map[string]metav1.ConditionStatus{v1alpha1.ConditionReady: "False", v1alpha1.ConditionReconciling: "True"}},
		{"a person is to decide", Waiting, map[string]metav1.ConditionStatus{v1alpha1.ConditionReady: "False"}},
		{"it gets stuck again", Stalled, map[string]metav1.ConditionStatus{v1alpha1.ConditionReady: "False", v1alpha1.ConditionStalled: "True"}},
		{"it is done", Ready, map[string]metav1.ConditionStatus{v1alpha1.ConditionReady: "True"}},
	} {
		step.set(&conditions, 3, "Reason", "message")
		got := map[string]metav1.ConditionStatus{}
		for _, c := range conditions {
			got[c.Type] = c.Status
			if c.ObservedGeneration != 3 || c.Reason != "Reason" || c.Message != "message" {
				t.Errorf("%s: %+v", step.name, c)
			}
		}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
}

func TestLongMessagesAreCut(t *testing.T) {
	for name, message := range map[string]string{
		"ASCII":                   strings.Repeat("x", maxMessage+1),
		"a character at the cut":  strings.Repeat("x", maxMessage-4) + strings.Repeat("€", 3),
		"characters of two bytes": strings.Repeat("ä", maxMessage),
	} {
		var conditions []metav1.Condition
		Set(&conditions, 1, v1alpha1.ConditionPlanned, false, "Reason", message)
		if got := conditions[0].Message; len(got) > maxMessage || !utf8.ValidString(got) || !strings.HasSuffix(got, "...") {
			t.Errorf("%s: %d bytes, valid %t, ends with %q", name, len(got), utf8.ValidString(got), got[len(got)-8:])
		}
	}
}
