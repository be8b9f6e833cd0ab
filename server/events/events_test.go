package events

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
)

func conditions(set func(c *[]metav1.Condition, generation int64, reason, message string), reason string) (c []metav1.Condition) {
	if set != nil {
		set(&c, 1, reason, "because")
	}
	return c
}

func TestEventsOfTransitions(t *testing.T) {
	approved := func(c []metav1.Condition) []metav1.Condition {
		condition.Set(&c, 1, v1alpha1.ConditionApproved, true, v1alpha1.ReasonApproved, "by bob")
		return c
	}
	event := func(warning bool, reason string) []Event { return []Event{{warning, reason, "because"}} }
	waiting := conditions(condition.Waiting, v1alpha1.ReasonAwaitingApproval)
	for name, tc := range map[string]struct {
		before, now []metav1.Condition
		want        []Event
	}{
		"work begins":                    {nil, conditions(condition.Reconciling, v1alpha1.ReasonPlanning), nil},
		"a plan waits":                   {nil, waiting, event(false, "AwaitingApproval")},
		"it still waits":                 {waiting, waiting, nil},
		"a user approves it":             {waiting, approved(conditions(condition.Reconciling, v1alpha1.ReasonApproved)), []Event{{false, "Approved", "by bob"}}},
		"the apply fails":                {waiting, conditions(condition.Stalled, v1alpha1.ReasonApplyFailed), event(true, "ApplyFailed")},
		"a waiting plan becomes stale":   {waiting, conditions(condition.Waiting, v1alpha1.ReasonStale), event(true, "Stale")},
		"a user discards it":             {waiting, conditions(condition.Stalled, v1alpha1.ReasonDiscarded), event(false, "Discarded")},
		"a stack is about to try again":  {waiting, conditions(condition.Reconciling, v1alpha1.ReasonRetrying), event(true, "Retrying")},
		"a workflow begins":              {waiting, conditions(condition.Reconciling, v1alpha1.ReasonWorkflowRunning), nil},
		"a workflow waits for a worker":  {waiting, conditions(condition.Reconciling, v1alpha1.ReasonAwaitingWorker), event(true, "AwaitingWorker")},
		"all is applied":                 {waiting, conditions(condition.Ready, v1alpha1.ReasonApplied), event(false, "Applied")},
		"a policy denies what was ready": {conditions(condition.Ready, v1alpha1.ReasonApplied), conditions(condition.Stalled, v1alpha1.ReasonPolicyDenied), event(true, "PolicyDenied")},
	} {
		if diff := cmp.Diff(tc.want, Of(tc.before, tc.now)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestEventsOfResources(t *testing.T) {
	failed := conditions(condition.Stalled, v1alpha1.ReasonApplyFailed)
	ready := conditions(condition.Ready, v1alpha1.ReasonApplied)
	for name, tc := range map[string]struct {
		before, now []metav1.Condition
		want        string
	}{
		"a change succeeds":             {conditions(condition.Waiting, v1alpha1.ReasonAwaitingPlan), ready, ""},
		"a change fails":                {ready, failed, "Warning ApplyFailed"},
		"the outcome is unknown":        {nil, conditions(condition.Stalled, v1alpha1.ReasonCreateUnknown), "Warning CreateUnknown"},
		"a drift check finds drift":     {ready, conditions(condition.Stalled, v1alpha1.ReasonDrifted), "Warning Drifted"},
		"it is in order again":          {failed, ready, "Normal Applied"},
		"it depends on a failed one":    {ready, conditions(condition.Stalled, v1alpha1.ReasonSkipped), ""},
		"the plan was cancelled":        {ready, conditions(condition.Stalled, v1alpha1.ReasonCancelled), ""},
		"it fails in the same way":      {failed, failed, ""},
		"a replacement is half done":    {ready, conditions(condition.Reconciling, v1alpha1.ReasonApplying), ""},
		"a plan destroyed it":           {ready, conditions(condition.Waiting, v1alpha1.ReasonDestroyed), ""},
		"a failed one waits for a plan": {failed, conditions(condition.Waiting, v1alpha1.ReasonAwaitingPlan), ""},
	} {
		got := ""
		if e, ok := OfResource(tc.before, tc.now); ok {
			got = map[bool]string{true: "Warning ", false: "Normal "}[e.Warning] + e.Reason
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

func TestManyEventsOfANamespace(t *testing.T) {
	r := NewRecorder(fake.NewClientset(), nil)
	defer r.Close()
	now, allowed := time.Now(), 0
	for range 10 * burst {
		if r.allows("busy", now) {
			allowed++
		}
	}
	if allowed != burst {
		t.Errorf("a namespace may have %d events at once, want %d", allowed, burst)
	}
	if !r.allows("quiet", now) || !r.allows("busy", now.Add(time.Second)) {
		t.Error("a busy namespace delays another one, or itself for ever")
	}
	for i := range 2 * maxLimits {
		r.allows(fmt.Sprint("namespace-", i), now.Add(time.Duration(i)*time.Minute))
	}
	if n := len(r.limits); n > maxLimits+1 {
		t.Errorf("the limits of %d namespaces are in memory", n)
	}
}

func TestRecordedEvents(t *testing.T) {
	client := fake.NewClientset()
	r := NewRecorder(client, nil)
	defer r.Close()
	object := corev1.ObjectReference{APIVersion: "sim.hykube.io/v1", Kind: "sim-instance", Namespace: "prod", Name: "web[0]", UID: "u"}
	r.Record(object, Event{Warning: true, Reason: "ApplyFailed", Message: strings.Repeat("ü", maxMessage)})
	deadline := time.Now().Add(10 * time.Second)
	for {
		list, err := client.CoreV1().Events("prod").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if len(list.Items) == 1 {
			e := list.Items[0]
			if e.Type != "Warning" || e.Reason != "ApplyFailed" || e.InvolvedObject.UID != "u" || e.Source.Component != "hykube" || len(e.Message) > maxMessage || !strings.HasSuffix(e.Message, "ü...") {
				t.Errorf("the event is %+v", e)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("no event was written")
		}
		time.Sleep(10 * time.Millisecond)
	}
}
