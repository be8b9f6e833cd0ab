package server_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
)

// approvePartly sends an approval, partial or not.
func approvePartly(t *testing.T, client dynamic.ResourceInterface, p *v1alpha1.Plan, approval v1alpha1.PlanApproval) (*v1alpha1.Plan, error) {
	t.Helper()
	sent := &v1alpha1.Plan{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "Plan"}, ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace}}
	sent.Status.Approval = &approval
	obj, err := client.Update(t.Context(), objectOf(t, sent), metav1.UpdateOptions{}, "approval")
	if err != nil {
		return nil, err
	}
	return planOf(t, obj), nil
}

// kindOf returns the resource that an error is about.
func kindOf(err error) string {
	if s, ok := errors.AsType[*apierrors.StatusError](err); ok && s.ErrStatus.Details != nil {
		return s.ErrStatus.Details.Kind
	}
	return ""
}

func causes(err error) []string {
	var out []string
	if s := apierrors.APIStatus(nil); errors.As(err, &s) && s.Status().Details != nil {
		for _, c := range s.Status().Details.Causes {
			out = append(out, strings.TrimSpace(string(c.Type)+" "+c.Field))
		}
	}
	return out
}

// TestApprovalOfWhatCannotBeApplied asks for every approval of plans with blocked and stale changes.
func TestApprovalOfWhatCannotBeApplied(t *testing.T) {
	ns := namespace(t, "partial")
	client := objects(t, shared.admin()).Resource(plans).Namespace(ns)
	stale := []changes.Obstacle{{Address: "sim_network.a", Why: "the object was changed"}}
	blocked := []changes.Obstacle{{Address: "sim_network.b", Why: "its lifecycle.preventDestroy forbids destroying it"}}
	many := slices.Repeat(stale, 7)
	for name, test := range map[string]struct {
		found         changes.Verification
		whole, partly []string // the causes of the refusal; nil when it is approved
		says          string   // a number that the message must have
	}{
		"nothing moved":      {changes.Verification{Left: 2}, nil, nil, ""},
		"one change moved":   {changes.Verification{Stale: stale, Left: 2}, []string{"Stale sim_network.a"}, nil, "the 2 other changes"},
		"one is blocked":     {changes.Verification{Blocked: blocked, Left: 1}, []string{"Blocked sim_network.b"}, nil, ""},
		"others need it":     {changes.Verification{Blocked: blocked, Dependants: 3, Left: 1}, []string{"Blocked sim_network.b"}, nil, "3 more"},
		"both":               {changes.Verification{Stale: stale, Blocked: blocked, Left: 1}, []string{"Stale sim_network.a", "Blocked sim_network.b"}, nil, ""},
		"every change moved": {changes.Verification{Stale: stale}, []string{"Stale sim_network.a", "NothingLeft"}, []string{"Stale sim_network.a", "NothingLeft"}, ""},
		"all are blocked":    {changes.Verification{Blocked: blocked}, []string{"Blocked sim_network.b", "NothingLeft"}, []string{"Blocked sim_network.b", "NothingLeft"}, ""},
		"very many moved":    {changes.Verification{Stale: many, Left: 1}, slices.Repeat([]string{"Stale sim_network.a"}, 5), nil, "2 more"},
	} {
		t.Run(name, func(t *testing.T) {
			p := planned(t, shared, ns, nil)
			verifications.Store(p.UID, test.found)
			_, err := approvePartly(t, client, p, v1alpha1.PlanApproval{Decision: v1alpha1.DecisionApproved, Digest: digest})
			if diff := cmp.Diff(test.whole, causes(err)); diff != "" || apierrors.IsConflict(err) != (test.whole != nil) {
				t.Fatalf("whole: %v (-want +got)\n%s", err, diff)
			}
			if err == nil {
				_, err := approvePartly(t, client, p, v1alpha1.PlanApproval{Decision: v1alpha1.DecisionApproved, Digest: digest, Partial: true})
				if !apierrors.IsConflict(err) {
					t.Errorf("partly after it was approved whole: %v", err)
				}
				return
			}
			if !strings.Contains(err.Error(), test.says) {
				t.Errorf("says %v, want %q", err, test.says)
			}
			for range 2 { // the second is the first again, as after a lost answer
				got, err := approvePartly(t, client, p, v1alpha1.PlanApproval{Decision: v1alpha1.DecisionApproved, Digest: digest, Partial: true})
				if diff := cmp.Diff(test.partly, causes(err)); diff != "" || apierrors.IsConflict(err) != (test.partly != nil) {
					t.Fatalf("partly: %v (-want +got)\n%s", err, diff)
				}
				if err == nil && (!got.Status.Approval.Partial || condition(got, v1alpha1.ConditionStalled).Status == metav1.ConditionTrue) {
					t.Errorf("approved partly: %+v", got.Status)
				}
			}
		})
	}
}

// TestPartialDecisions asks for what cannot be decided in part, or at all.
func TestPartialDecisions(t *testing.T) {
	ns := namespace(t, "partial-decisions")
	client := objects(t, shared.admin()).Resource(plans).Namespace(ns)
	p := planned(t, shared, ns, nil)
	if _, err := approvePartly(t, client, p, v1alpha1.PlanApproval{Decision: v1alpha1.DecisionDiscarded, Partial: true}); !apierrors.IsInvalid(err) {
		t.Errorf("discarded in part: %v", err)
	}
	got, err := approvePartly(t, client, p, v1alpha1.PlanApproval{Decision: v1alpha1.DecisionApproved, Digest: digest, Partial: true})
	if err != nil || !got.Status.Approval.Partial {
		t.Errorf("a partial approval of a plan with neither stale nor blocked changes: %v", err)
	}
	discarded := planned(t, shared, ns, nil)
	if _, err := approvePartly(t, client, discarded, v1alpha1.PlanApproval{Decision: v1alpha1.DecisionDiscarded}); err != nil {
		t.Fatal(err)
	}
	if _, err := approvePartly(t, client, discarded, v1alpha1.PlanApproval{Decision: v1alpha1.DecisionApproved, Digest: digest, Partial: true}); !apierrors.IsConflict(err) {
		t.Errorf("approved after it was discarded: %v", err)
	}
	waiting := planned(t, shared, ns, func(p *v1alpha1.Plan) {
		p.Status.Conditions = append(p.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonBlocked, LastTransitionTime: metav1.Now()})
	})
	if _, err := client.Update(t.Context(), objectOf(t, waiting), metav1.UpdateOptions{}, "cancel"); err != nil {
		t.Errorf("cancel of a plan that is blocked and waits: %v", err)
	}
}
