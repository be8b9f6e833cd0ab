package notification

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
)

var planned = metav1.NewTime(time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC))

func plan(set func(*[]metav1.Condition, int64, string, string), reason string, change func(*v1alpha1.Plan)) *v1alpha1.Plan {
	p := &v1alpha1.Plan{ObjectMeta: metav1.ObjectMeta{Name: "web-1", Namespace: "prod", UID: "u"}}
	p.Status.PlannedAt = &planned
	set(&p.Status.Conditions, 1, reason, "why")
	if change != nil {
		change(p)
	}
	return p
}

func TestTransitionsOfPlans(t *testing.T) {
	for name, tc := range map[string]struct {
		plan *v1alpha1.Plan
		want v1alpha1.NotificationReason // empty if no one needs to act
	}{
		"it waits":                 {plan(condition.Waiting, v1alpha1.ReasonAwaitingApproval, nil), v1alpha1.NotifyAwaitingApproval},
		"it is blocked":            {plan(condition.Stalled, v1alpha1.ReasonBlocked, nil), v1alpha1.NotifyAwaitingApproval},
		"planning failed":          {plan(condition.Stalled, v1alpha1.ReasonPlanFailed, nil), v1alpha1.NotifyFailed},
		"the apply failed":         {plan(condition.Stalled, v1alpha1.ReasonApplyFailed, nil), v1alpha1.NotifyFailed},
		"a policy denies it":       {plan(condition.Stalled, v1alpha1.ReasonPolicyDenied, nil), v1alpha1.NotifyFailed},
		"it waits and is stale":    {plan(condition.Waiting, v1alpha1.ReasonStale, func(p *v1alpha1.Plan) { p.Status.StaleAt = &planned }), v1alpha1.NotifyStale},
		"its apply found it stale": {plan(condition.Stalled, v1alpha1.ReasonStale, nil), v1alpha1.NotifyStale},
		"it is applied":            {plan(condition.Ready, v1alpha1.ReasonApplied, nil), ""},
		"it is superseded":         {plan(condition.Stalled, v1alpha1.ReasonSuperseded, nil), ""},
		"it is discarded":          {plan(condition.Stalled, v1alpha1.ReasonDiscarded, nil), ""},
		"it is being made":         {plan(condition.Reconciling, v1alpha1.ReasonPlanning, nil), ""},
		"it is speculative":        {plan(condition.Stalled, v1alpha1.ReasonPlanFailed, func(p *v1alpha1.Plan) { p.Spec.Speculative = true }), ""},
		"it is deleted":            {plan(condition.Waiting, v1alpha1.ReasonAwaitingApproval, func(p *v1alpha1.Plan) { p.DeletionTimestamp = &planned }), ""},
		"it is cancelled":          {plan(condition.Waiting, v1alpha1.ReasonAwaitingApproval, func(p *v1alpha1.Plan) { p.Status.Cancel = &v1alpha1.PlanCancel{} }), ""},
	} {
		got, ok := OfPlan(tc.plan)
		if ok != (tc.want != "") || got.Reason != tc.want && ok {
			t.Errorf("%s: %q, %t, want %q", name, got.Reason, ok, tc.want)
		}
		if ok && (got.ID != "u-"+string(tc.want) || got.At.IsZero()) {
			t.Errorf("%s: ID %q at %s", name, got.ID, got.At)
		}
	}
}

func TestTransitionsOfStacks(t *testing.T) {
	for reason, want := range map[string]v1alpha1.NotificationReason{
		v1alpha1.ReasonDrifted: v1alpha1.NotifyDrifted, v1alpha1.ReasonOutputsFailed: v1alpha1.NotifyFailed, v1alpha1.ReasonMissingRights: v1alpha1.NotifyFailed,
		v1alpha1.ReasonWorkflowFailed: v1alpha1.NotifyFailed, v1alpha1.ReasonWorkflowIncomplete: v1alpha1.NotifyFailed, v1alpha1.ReasonCancelled: "",
		v1alpha1.ReasonApplyFailed: "", v1alpha1.ReasonDiscarded: "", // their plans have messages, or a user did that
	} {
		s := &v1alpha1.Stack{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "u"}}
		condition.Stalled(&s.Status.Conditions, 1, reason, "why")
		got, ok := OfStack(s)
		if ok != (want != "") || ok && got.Reason != want {
			t.Errorf("%s: %q, %t, want %q", reason, got.Reason, ok, want)
		}
		again, _ := OfStack(s)
		s.Status.Conditions[1].LastTransitionTime = metav1.NewTime(s.Status.Conditions[1].LastTransitionTime.Add(time.Hour))
		later, _ := OfStack(s)
		if ok && (again.ID != got.ID || later.ID == got.ID) {
			t.Errorf("%s: the IDs are %q, %q, and an hour later %q", reason, got.ID, again.ID, later.ID)
		}
	}
}

// hostile is a text that Slack or Teams would render as a mention, a link or a format.
const hostile = "<!channel> <https://evil.example|click> [click](https://evil.example) *bold* @here &\u202e\u0007"

// forms returns the message with hostile texts in each form, decoded.
func forms(t *testing.T, format v1alpha1.NotificationFormat) (body string, decoded map[string]any) {
	t.Helper()
	p := plan(condition.Waiting, v1alpha1.ReasonAwaitingApproval, func(p *v1alpha1.Plan) {
		p.Status.Conditions[0].Message = hostile
		p.Status.RequestedBy = &v1alpha1.Identity{Username: hostile}
	})
	tr, _ := OfPlan(p)
	m := AboutPlan(tr, p)
	m.Text = hostile
	m.Title += hostile
	encoded, _, err := m.Encode(format)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(encoded, &decoded); err != nil {
		t.Fatal(err)
	}
	return string(encoded), decoded
}

// elements calls visit for each JSON object in a value.
func elements(v any, visit func(map[string]any)) {
	switch v := v.(type) {
	case map[string]any:
		visit(v)
		for _, member := range v {
			elements(member, visit)
		}
	case []any:
		for _, item := range v {
			elements(item, visit)
		}
	}
}

func TestTextsAreEscapedForSlack(t *testing.T) {
	_, decoded := forms(t, v1alpha1.FormatSlack)
	text, _ := decoded["text"].(string)
	if strings.ContainsAny(text, "<>\u202e\u0007") || !strings.Contains(text, "&lt;!channel&gt;") {
		t.Errorf("text: %q", text)
	}
	elements(decoded["blocks"], func(e map[string]any) {
		if kind, _ := e["type"].(string); kind != "header" && kind != "section" && kind != "plain_text" {
			t.Errorf("a block is of the type %q, in which Slack finds links and mentions", kind)
		}
		if text, ok := e["text"].(string); ok && (strings.ContainsAny(text, "\u202e\u0007") || len([]rune(text)) > 3000) {
			t.Errorf("a block has the text %q", text)
		}
	})
}

func TestTextsAreEscapedForTeams(t *testing.T) {
	_, decoded := forms(t, v1alpha1.FormatTeams)
	runs := 0
	elements(decoded, func(e map[string]any) {
		switch kind, _ := e["type"].(string); kind {
		case "TextRun":
			runs++
		case "message", "AdaptiveCard", "RichTextBlock":
		case "":
			if _, ok := e["contentType"]; !ok {
				t.Errorf("an element without a type: %v", e)
			}
		default:
			t.Errorf("an element is of the type %q, in which Teams finds Markdown", kind)
		}
	})
	if runs < 4 {
		t.Errorf("the card has %d texts", runs)
	}
}

func TestCloudEvent(t *testing.T) {
	_, e := forms(t, v1alpha1.FormatCloudEvents)
	data, _ := e["data"].(map[string]any)
	if e["specversion"] != "1.0" || e["id"] != "u-AwaitingApproval" || e["type"] != "io.hykube.plan.awaitingapproval" || e["subject"] != "plans/web-1" ||
		e["time"] != "2026-11-24T12:00:00Z" || e["source"] != "/apis/hykube.io/v1alpha1/namespaces/prod" || data["command"] != "kubectl hykube show web-1 -n prod" {
		t.Errorf("the event is %v", e)
	}
	m := AboutLeftOut("id", "prod", planned.Time, map[v1alpha1.NotificationReason]int{v1alpha1.NotifyFailed: 3, v1alpha1.NotifyStale: 4})
	if m.Title != "7 further messages of the namespace prod were left out" || m.Detail != "Too many at once: 3 Failed, 4 Stale." || m.cloudEvent().Type != "io.hykube.notification.leftout" {
		t.Errorf("the summary is %+v", m)
	}
}

func TestLongDetailsAreCut(t *testing.T) {
	p := plan(condition.Waiting, v1alpha1.ReasonAwaitingApproval, func(p *v1alpha1.Plan) { p.Status.Conditions[0].Message = strings.Repeat("ü", 20_000) })
	tr, _ := OfPlan(p)
	if n := len(AboutPlan(tr, p).Detail); n > maxDetail+3 {
		t.Errorf("the detail has %d bytes", n)
	}
}

// TestFailuresNameTheirReason has the summary of the first error about an object, and no detail, which may have values.
func TestFailuresNameTheirReason(t *testing.T) {
	p := plan(condition.Stalled, v1alpha1.ReasonPlanFailed, func(p *v1alpha1.Plan) {
		p.Status.Conditions[0].Message = "Error in sim_disk.d, see status.diagnostics."
		p.Status.Diagnostics = []v1alpha1.Diagnostic{
			{Severity: v1alpha1.SeverityWarning, Address: "sim_disk.a", Summary: "Old"},
			{Severity: v1alpha1.SeverityError, Address: "sim_disk.d", Summary: "Invalid size", Detail: "the size is 7"},
		}
	})
	tr, _ := OfPlan(p)
	if got, want := AboutPlan(tr, p).Detail, "Error in sim_disk.d, see status.diagnostics. sim_disk.d: Invalid size."; got != want {
		t.Errorf("the detail is %q, want %q", got, want)
	}
}
