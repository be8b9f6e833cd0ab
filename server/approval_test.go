package server_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/hykube/hykube/api/v1alpha1"
)

const digest = "sha256:0123"

func planOf(t *testing.T, obj *unstructured.Unstructured) *v1alpha1.Plan {
	t.Helper()
	p := new(v1alpha1.Plan)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, p); err != nil {
		t.Fatal(err)
	}
	return p
}

func objectOf(t *testing.T, p *v1alpha1.Plan) *unstructured.Unstructured {
	t.Helper()
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(p)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: m}
}

func condition(p *v1alpha1.Plan, kind string) metav1.Condition {
	if c := meta.FindStatusCondition(p.Status.Conditions, kind); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// planned makes a plan as the administrator. As the server, it sets the status of a plan that waits for approval;
// change may set another.
func planned(t *testing.T, s *instance, ns string, change func(*v1alpha1.Plan)) *v1alpha1.Plan {
	t.Helper()
	client := objects(t, s.admin()).Resource(plans).Namespace(ns)
	obj := newPlan("", nil)
	obj.SetGenerateName("p-")
	created, err := client.Create(t.Context(), obj, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p := planOf(t, created)
	p.Status.Digest = digest
	set := func(kind string, status metav1.ConditionStatus, reason string) {
		meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: reason + "."})
	}
	set(v1alpha1.ConditionPlanned, metav1.ConditionTrue, v1alpha1.ReasonPlanned)
	set(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonAwaitingApproval)
	set(v1alpha1.ConditionReconciling, metav1.ConditionFalse, v1alpha1.ReasonAwaitingApproval)
	if change != nil {
		change(p)
	}
	updated, err := objects(t, s.itself).Resource(plans).Namespace(ns).UpdateStatus(t.Context(), objectOf(t, p), metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return planOf(t, updated)
}

func decide(t *testing.T, client dynamic.ResourceInterface, p *v1alpha1.Plan, decision v1alpha1.Decision, digest string) (*v1alpha1.Plan, error) {
	t.Helper()
	sent := &v1alpha1.Plan{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "Plan"}, ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace}}
	sent.Status.Approval = &v1alpha1.PlanApproval{Decision: decision, Digest: digest, Message: "seen", By: &v1alpha1.Identity{Username: "forged"}}
	obj, err := client.Update(t.Context(), objectOf(t, sent), metav1.UpdateOptions{}, "approval")
	if err != nil {
		return nil, err
	}
	return planOf(t, obj), nil
}

func TestDecisions(t *testing.T) {
	ns := namespace(t, "decisions")
	client := objects(t, shared.admin()).Resource(plans).Namespace(ns)
	with := func(kind string, status metav1.ConditionStatus, reason string) func(*v1alpha1.Plan) {
		return func(p *v1alpha1.Plan) {
			meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: "sim_network.main moved."})
		}
	}
	for name, test := range map[string]struct {
		change   func(*v1alpha1.Plan)
		decision v1alpha1.Decision
		digest   string
		want     string // the reason of the refusal, with the causes
	}{
		"approve what was read":                {nil, v1alpha1.DecisionApproved, digest, ""},
		"discard":                              {nil, v1alpha1.DecisionDiscarded, "", ""},
		"approve something else":               {nil, v1alpha1.DecisionApproved, "sha256:9999", "Conflict"},
		"discard something else":               {nil, v1alpha1.DecisionDiscarded, "sha256:9999", "Conflict"},
		"approve without saying what":          {nil, v1alpha1.DecisionApproved, "", "Invalid FieldValueRequired status.approval.digest"},
		"a decision that is none":              {nil, "Perhaps", digest, "Invalid FieldValueNotSupported status.approval.decision"},
		"approve what is still being planned":  {func(p *v1alpha1.Plan) { meta.RemoveStatusCondition(&p.Status.Conditions, v1alpha1.ConditionPlanned) }, v1alpha1.DecisionApproved, digest, "Conflict"},
		"approve what could not be planned":    {with(v1alpha1.ConditionPlanned, metav1.ConditionFalse, v1alpha1.ReasonPlanFailed), v1alpha1.DecisionApproved, digest, "Conflict"},
		"approve what is stale":                {with(v1alpha1.ConditionStale, metav1.ConditionTrue, v1alpha1.ReasonStale), v1alpha1.DecisionApproved, digest, "Conflict"},
		"discard what is stale":                {with(v1alpha1.ConditionStale, metav1.ConditionTrue, v1alpha1.ReasonStale), v1alpha1.DecisionDiscarded, "", ""},
		"approve where there is nothing to do": {with(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonNoChanges), v1alpha1.DecisionApproved, digest, "Conflict"},
	} {
		t.Run(name, func(t *testing.T) {
			p := planned(t, shared, ns, test.change)
			got, err := decide(t, client, p, test.decision, test.digest)
			if test.want != "" {
				if got := strings.Join(append([]string{string(apierrors.ReasonForError(err))}, causes(err)...), " "); got != test.want {
					t.Fatalf("got %q, want %q: %v", got, test.want, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			a := got.Status.Approval
			if a == nil || a.Decision != test.decision || a.Digest != digest || a.By == nil || a.By.Username != "hykube:admin" || a.At == nil || a.Message != "seen" {
				t.Errorf("approval %+v", a)
			}
			approved := condition(got, v1alpha1.ConditionApproved)
			if want := test.decision == v1alpha1.DecisionApproved; (approved.Status == metav1.ConditionTrue) != want {
				t.Errorf("condition Approved: %+v", approved)
			}
			if stalled := condition(got, v1alpha1.ConditionStalled).Status == metav1.ConditionTrue; stalled != (test.decision == v1alpha1.DecisionDiscarded) {
				t.Errorf("stalled: %v", stalled)
			}
			if _, err := decide(t, client, p, test.decision, test.digest); err != nil {
				t.Errorf("the same decision again, as after a lost answer: %v", err)
			}
			other := map[v1alpha1.Decision]v1alpha1.Decision{v1alpha1.DecisionApproved: v1alpha1.DecisionDiscarded, v1alpha1.DecisionDiscarded: v1alpha1.DecisionApproved}
			if _, err := decide(t, client, p, other[test.decision], digest); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "hykube:admin") {
				t.Errorf("the other decision afterwards: %v, want a conflict that says who decided", err)
			}
		})
	}
}

func TestStatusCannotForgeADecision(t *testing.T) {
	ns := namespace(t, "forged")
	p := planned(t, shared, ns, func(p *v1alpha1.Plan) {
		p.Status.Approval = &v1alpha1.PlanApproval{Decision: v1alpha1.DecisionApproved, Digest: digest}
		p.Status.Cancel = &v1alpha1.PlanCancel{}
		p.Status.RequestedBy = &v1alpha1.Identity{Username: "forged"}
		p.Spec.Destroy = true
		p.Labels = map[string]string{"forged": "yes"}
	})
	if p.Status.Approval != nil || p.Status.Cancel != nil || p.Status.RequestedBy.Username == "forged" || p.Spec.Destroy || p.Labels != nil {
		t.Errorf("taken through status: %+v", p)
	}
	if p.Status.Digest != digest {
		t.Errorf("the rest of the status was not: %+v", p.Status)
	}
}

func TestCancel(t *testing.T) {
	ns := namespace(t, "cancel")
	client := objects(t, shared.admin()).Resource(plans).Namespace(ns)
	p := planned(t, shared, ns, nil)
	body := objectOf(t, p)
	for range 2 { // asking twice is no error
		got, err := client.Update(t.Context(), body, metav1.UpdateOptions{}, "cancel")
		if err != nil {
			t.Fatal(err)
		}
		if c := planOf(t, got).Status.Cancel; c == nil || c.By.Username != "hykube:admin" || c.At == nil {
			t.Errorf("cancel %+v", c)
		}
	}
	if _, err := decide(t, client, p, v1alpha1.DecisionApproved, digest); !apierrors.IsConflict(err) {
		t.Errorf("approve afterwards: %v", err)
	}
	applying := planned(t, shared, ns, nil)
	if _, err := decide(t, client, applying, v1alpha1.DecisionApproved, digest); err != nil {
		t.Fatal(err)
	}
	got, err := client.Update(t.Context(), objectOf(t, applying), metav1.UpdateOptions{}, "cancel")
	if err != nil {
		t.Fatal(err)
	}
	ready := meta.FindStatusCondition(planOf(t, got).Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Reason != v1alpha1.ReasonCancelling || planOf(t, got).Status.FinishedAt != nil {
		t.Errorf("while it is being applied: %+v", ready)
	}
	done := planned(t, shared, ns, func(p *v1alpha1.Plan) {
		meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonApplied})
	})
	if _, err := client.Update(t.Context(), objectOf(t, done), metav1.UpdateOptions{}, "cancel"); !apierrors.IsConflict(err) {
		t.Errorf("cancel of what has ended: %v, want a conflict", err)
	}
}

func TestApprovalHasItsOwnRight(t *testing.T) {
	ns := namespace(t, "rights")
	admin := objects(t, shared.admin()).Resource(plans).Namespace(ns)
	editor := objects(t, shared.as("editor")).Resource(plans).Namespace(ns)
	approver := objects(t, shared.as("approver")).Resource(plans).Namespace(ns)
	bind(t, ns, "edit", "writers")
	bind(t, ns, "hykube.plan-approver", "approvers")

	var p *v1alpha1.Plan
	eventually(t, "an editor may make a plan", func() bool {
		_, err := editor.Create(t.Context(), newPlan("by-editor", nil), metav1.CreateOptions{})
		return err == nil
	})
	automatic := newPlan("automatic", map[string]any{"approval": "Automatic"})
	if _, err := editor.Create(t.Context(), automatic, metav1.CreateOptions{}); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `"approve"`) {
		t.Errorf("a plan that approves itself, by an editor: %v, want Forbidden", err)
	}
	if _, err := editor.Apply(t.Context(), "automatic", automatic, metav1.ApplyOptions{FieldManager: "test"}); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `"approve"`) {
		t.Errorf("the same by server-side apply: %v, want Forbidden", err)
	}
	if _, err := admin.Create(t.Context(), automatic, metav1.CreateOptions{}); err != nil {
		t.Errorf("a plan that approves itself, by an administrator: %v", err)
	}
	p = planned(t, shared, ns, nil)
	if _, err := decide(t, editor, p, v1alpha1.DecisionApproved, digest); !apierrors.IsForbidden(err) {
		t.Errorf("approve as an editor: %v, want Forbidden", err)
	}
	var got *v1alpha1.Plan
	eventually(t, "an approver may approve", func() bool {
		var err error
		got, err = decide(t, approver, p, v1alpha1.DecisionApproved, digest)
		return err == nil
	})
	if got.Status.Approval.By.Username != "approver" {
		t.Errorf("approved by %+v", got.Status.Approval.By)
	}
}

// TestUsersDoNotWriteTheStatusOfAProvider writes the status of a Provider and of a ProviderConfig as an administrator.
// The checksum in it decides which program the server runs.
func TestUsersDoNotWriteTheStatusOfAProvider(t *testing.T) {
	ns := namespace(t, "restated")
	all := objects(t, shared.admin())
	for resource, client := range map[string]dynamic.ResourceInterface{
		"providers": all.Resource(v1alpha1.SchemeGroupVersion.WithResource("providers")), "providerconfigs": all.Resource(v1alpha1.SchemeGroupVersion.WithResource("providerconfigs")).Namespace(ns),
	} {
		kind, spec := "Provider", map[string]any{"source": "example.com/test/restated"}
		if resource == "providerconfigs" {
			kind, spec = "ProviderConfig", map[string]any{"provider": "restated"}
		}
		u := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "hykube.io/v1alpha1", "kind": kind, "metadata": map[string]any{"name": "restated"}, "spec": spec,
		}}
		created, err := client.Create(t.Context(), u, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		created.SetResourceVersion("")
		created.Object["status"] = map[string]any{"checksum": "h1:forged"}
		if _, err := client.UpdateStatus(t.Context(), created, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) || !apierrors.HasStatusCause(err, metav1.CauseTypeForbidden) {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// TestUsersDoNotWriteTheStatusOfAPlan writes the status of plans as an administrator: users and the server decide by
// it.
func TestUsersDoNotWriteTheStatusOfAPlan(t *testing.T) {
	ns := namespace(t, "rewritten")
	client := objects(t, shared.admin()).Resource(plans).Namespace(ns)
	created, err := client.Create(t.Context(), newPlan("being-made", nil), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for phase, p := range map[string]*v1alpha1.Plan{
		"being made": planOf(t, created),
		"failed": planned(t, shared, ns, func(p *v1alpha1.Plan) {
			p.Status.Digest = ""
			meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionPlanned, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonPlanFailed})
		}),
		"made": planned(t, shared, ns, func(p *v1alpha1.Plan) { p.Status.Summary = &v1alpha1.PlanSummary{Create: 3, Text: "+3"} }),
	} {
		for part, change := range map[string]func(*v1alpha1.PlanStatus){
			"digest":     func(s *v1alpha1.PlanStatus) { s.Digest = "sha256:forged" },
			"contents":   func(s *v1alpha1.PlanStatus) { s.Contents = "hmac-sha256:forged" },
			"time":       func(s *v1alpha1.PlanStatus) { s.PlannedAt = new(metav1.Now()) },
			"requested":  func(s *v1alpha1.PlanStatus) { s.RequestedAt = new(metav1.NowMicro()) },
			"summary":    func(s *v1alpha1.PlanStatus) { s.Summary = &v1alpha1.PlanSummary{Update: 1} },
			"runs":       func(s *v1alpha1.PlanStatus) { s.Runs = &v1alpha1.PlanRuns{Plan: "plan.team-b.x"} },
			"conditions": func(s *v1alpha1.PlanStatus) { s.Conditions = s.Conditions[:1] },
			"approval":   func(s *v1alpha1.PlanStatus) { s.Approval = &v1alpha1.PlanApproval{Decision: v1alpha1.DecisionApproved} },
			"all of it":  func(s *v1alpha1.PlanStatus) { *s = v1alpha1.PlanStatus{} },
		} {
			forged := p.DeepCopy()
			change(&forged.Status)
			if _, err := client.UpdateStatus(t.Context(), objectOf(t, forged), metav1.UpdateOptions{}); !apierrors.IsInvalid(err) || !apierrors.HasStatusCause(err, metav1.CauseTypeForbidden) {
				t.Errorf("%s of a plan that is %s: %v", part, phase, err)
			}
		}
		read, err := client.Get(t.Context(), p.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(p.Status, planOf(t, read).Status); d != "" {
			t.Errorf("the status of a plan that is %s changed (-before +after):\n%s", phase, d)
		}
	}
}
