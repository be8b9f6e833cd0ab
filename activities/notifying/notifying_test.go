package notifying

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/testsuite"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/notification"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/internal/webhook"
	"github.com/hykube/hykube/workflows"
)

// world is a server with a Notification and a plan that waits.
type world struct {
	n       *v1alpha1.Notification
	plan    *v1alpha1.Plan
	denied  string // the resource to which the author has no right
	secrets map[string]string
	answer  error
	sent    []webhook.Request
	asked   []store.Right
}

func newWorld() *world {
	w := &world{n: &v1alpha1.Notification{ObjectMeta: metav1.ObjectMeta{Name: "team", Namespace: "prod", UID: "n", Generation: 3}},
		plan:    &v1alpha1.Plan{ObjectMeta: metav1.ObjectMeta{Name: "web-1", Namespace: "prod", UID: "p"}},
		secrets: map[string]string{"url": "https://example.com/secret-path", "token": "secret-token\n", "key": "secret-signing-key-of-32-bytes--"}}
	w.n.Spec.Webhook = v1alpha1.Webhook{Format: v1alpha1.FormatSlack, URLFrom: &v1alpha1.SecretKey{Name: "hook", Key: "url"},
		HeadersFrom: []v1alpha1.WebhookHeader{{Name: "Authorization", SecretKey: v1alpha1.SecretKey{Name: "hook", Key: "token"}}}, SigningKeyFrom: &v1alpha1.SecretKey{Name: "hook", Key: "key"}}
	w.n.Status.Author = &v1alpha1.Identity{Username: "alice"}
	condition.Waiting(&w.plan.Status.Conditions, 1, v1alpha1.ReasonAwaitingApproval, "1 to create")
	return w
}

func (w *world) Notification(_ context.Context, _, _ string, uid types.UID) (*v1alpha1.Notification, error) {
	if w.n == nil || w.n.UID != uid {
		return nil, store.ErrGone
	}
	return w.n.DeepCopy(), nil
}

func (w *world) UpdateNotification(_ context.Context, _, _ string, _ types.UID, change func(*v1alpha1.NotificationStatus)) error {
	change(&w.n.Status)
	return nil
}

func (w *world) Plan(context.Context, string, string, types.UID) (*v1alpha1.Plan, error) {
	if w.plan == nil {
		return nil, store.ErrGone
	}
	return w.plan, nil
}

func (w *world) Stack(context.Context, string, string, types.UID) (*v1alpha1.Stack, error) {
	return nil, store.ErrGone
}

func (w *world) Secret(_ context.Context, namespace, name, key string) ([]byte, error) {
	value, ok := w.secrets[key]
	if !ok {
		return nil, &store.SecretError{Namespace: namespace, Name: name, Key: key}
	}
	return []byte(value), nil
}

func (w *world) May(_ context.Context, who v1alpha1.Identity, right store.Right) (bool, error) {
	w.asked = append(w.asked, right)
	return who.Username == "alice" && right.Resource != w.denied, nil
}

func (w *world) Send(_ context.Context, r webhook.Request) (int, error) {
	w.sent = append(w.sent, r)
	return http.StatusOK, w.answer
}

// deliver runs the activity once.
func (w *world) deliver(t *testing.T) (result workflows.Delivered, err error) {
	t.Helper()
	tr := notification.Transition{ID: "p-AwaitingApproval", Reason: v1alpha1.NotifyAwaitingApproval, Kind: notification.KindPlan, Name: "web-1", UID: "p"}
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	(&Notifier{Objects: w, Secrets: w, Access: w, Sender: w, Logger: slog.New(slog.DiscardHandler)}).Register(env)
	value, err := env.ExecuteActivity(workflows.ActivityDeliver, workflows.Delivery{Notification: workflows.Notification{Namespace: "prod", Name: "team", UID: "n"}, Transition: &tr})
	if err == nil {
		err = value.Get(&result)
	}
	return result, err
}

func TestDeliver(t *testing.T) {
	w := newWorld()
	result, err := w.deliver(t)
	if err != nil || !result.Sent || len(w.sent) != 1 {
		t.Fatalf("%+v, %v, %d requests", result, err, len(w.sent))
	}
	r := w.sent[0]
	if r.URL != "https://example.com/secret-path" || r.Header.Get("Authorization") != "secret-token" || r.Header.Get(webhook.HeaderID) != "p-AwaitingApproval" || r.Header.Get(webhook.HeaderSignature) == "" {
		t.Errorf("the request is %+v", r)
	}
	if s := w.n.Status; s.Delivered != 1 || s.Last == nil || s.Last.Name != "web-1" || s.Last.Code != 200 || s.Last.DeliveredAt == nil {
		t.Errorf("the status is %+v", s)
	}
}

func TestMessagesThatAreNotSent(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*world)
		gone   bool
	}{
		"the Notification is gone":      {func(w *world) { w.n = nil }, true},
		"the Notification is suspended": {func(w *world) { w.n.Spec.Suspend = true }, false},
		"the plan is gone":              {func(w *world) { w.plan = nil }, false},
		"the plan is applied":           {func(w *world) { condition.Ready(&w.plan.Status.Conditions, 1, v1alpha1.ReasonApplied, "") }, false},
		"the plan is superseded":        {func(w *world) { condition.Stalled(&w.plan.Status.Conditions, 1, v1alpha1.ReasonSuperseded, "") }, false},
	} {
		w := newWorld()
		tc.change(w)
		result, err := w.deliver(t)
		if err != nil || result.Sent || result.Gone != tc.gone || len(w.sent) > 0 {
			t.Errorf("%s: %+v, %v, %d requests", name, result, err, len(w.sent))
		}
	}
}

func TestProblems(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*world)
		reason string
		text   string
		final  bool
	}{
		"no right to plans":       {func(w *world) { w.denied = "plans" }, v1alpha1.ReasonMissingRights, `"alice"`, true},
		"no right to stacks":      {func(w *world) { w.denied = "stacks" }, v1alpha1.ReasonMissingRights, `get stacks`, true},
		"no right to Secrets":     {func(w *world) { w.denied = "secrets" }, v1alpha1.ReasonMissingRights, `get secrets`, true},
		"no author":               {func(w *world) { w.n.Status.Author = nil }, v1alpha1.ReasonMissingRights, "write its spec again", true},
		"no Secret":               {func(w *world) { delete(w.secrets, "token") }, v1alpha1.ReasonDeliveryRetrying, `no key "token"`, false},
		"a short signing key":     {func(w *world) { w.secrets["key"] = "secret" }, v1alpha1.ReasonDeliveryFailed, "24 bytes", true},
		"a giant value":           {func(w *world) { w.secrets["token"] = strings.Repeat("x", maxSecret+1) }, v1alpha1.ReasonDeliveryFailed, "bytes", true},
		"a busy receiver":         {func(w *world) { w.answer = &webhook.Error{Kind: webhook.Failed, Code: 503} }, v1alpha1.ReasonDeliveryRetrying, "HTTP 503", false},
		"a receiver that is gone": {func(w *world) { w.answer = &webhook.Error{Kind: webhook.Rejected, Code: 410} }, v1alpha1.ReasonDeliveryFailed, "HTTP 410", true},
	} {
		w := newWorld()
		tc.change(w)
		_, err := w.deliver(t)
		if err == nil {
			t.Errorf("%s: the activity succeeded", name)
			continue
		}
		var failure interface{ NonRetryable() bool }
		if !errors.As(err, &failure) || failure.NonRetryable() != tc.final {
			t.Errorf("%s: the error %v is final: %v, want %t", name, err, failure, tc.final)
		}
		ready := w.n.Status.Conditions[0]
		if ready.Reason != tc.reason || !strings.Contains(ready.Message, tc.text) || ready.ObservedGeneration != 3 {
			t.Errorf("%s: the condition is %+v", name, ready)
		}
		if all := err.Error() + ready.Message; strings.Contains(all, "secret-") || strings.Contains(all, "example.com") {
			t.Errorf("%s: the error or the condition has an address or a Secret: %s", name, all)
		}
		if tc.reason == v1alpha1.ReasonMissingRights && len(w.sent) > 0 {
			t.Errorf("%s: a message was sent", name)
		}
	}
}

// TestProblemsOfSecretsAreShown checks the Secrets of a Notification before a message is due. A user must not learn of a
// missing Secret only when a message is lost.
func TestProblemsOfSecretsAreShown(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*world)
		reason string
		text   string
	}{
		"all fit":                       {func(*world) {}, "", ""},
		"no address":                    {func(w *world) { delete(w.secrets, "url") }, v1alpha1.ReasonSecretNotFound, `"url"`},
		"no header":                     {func(w *world) { delete(w.secrets, "token") }, v1alpha1.ReasonSecretNotFound, `"token"`},
		"no signing key":                {func(w *world) { delete(w.secrets, "key") }, v1alpha1.ReasonSecretNotFound, `"key"`},
		"an address without encryption": {func(w *world) { w.secrets["url"] = "http://example.com/secret-path" }, v1alpha1.ReasonSecretRefused, `"url"`},
		"a header of two lines":         {func(w *world) { w.secrets["token"] = "secret-a\nsecret-b" }, v1alpha1.ReasonSecretRefused, `"token"`},
		"a short signing key":           {func(w *world) { w.secrets["key"] = "secret-" }, v1alpha1.ReasonSecretRefused, `"key"`},
		"a giant value":                 {func(w *world) { w.secrets["token"] = strings.Repeat("x", maxSecret+1) }, v1alpha1.ReasonSecretRefused, `"token"`},
		"suspended":                     {func(w *world) { w.n.Spec.Suspend = true; w.secrets = nil }, "", ""},
	} {
		w := newWorld()
		tc.change(w)
		reason, text, err := CheckSecrets(t.Context(), w, w.n)
		if err != nil || reason != tc.reason || !strings.Contains(text, tc.text) || strings.Contains(text, "secret-") {
			t.Errorf("%s: %q, %q, %v", name, reason, text, err)
		}
	}
}

func TestConditionsOfSecrets(t *testing.T) {
	ready := func(w *world) metav1.Condition {
		return *meta.FindStatusCondition(w.n.Status.Conditions, v1alpha1.ConditionReady)
	}
	w := newWorld()
	written := metav1.NewTime(time.Now().Add(-time.Hour))
	w.n.Status.Since = &written
	SetIdle(w.n, 3)
	if NoteSecrets(w.n, "", "") || ready(w).Reason != v1alpha1.ReasonNothingSent {
		t.Errorf("without a problem: %+v", ready(w))
	}
	if !NoteSecrets(w.n, v1alpha1.ReasonSecretNotFound, "it is missing") || !meta.IsStatusConditionTrue(w.n.Status.Conditions, v1alpha1.ConditionStalled) || ready(w).ObservedGeneration != 3 {
		t.Errorf("with a problem: %+v", w.n.Status.Conditions)
	}
	if NoteSecrets(w.n, v1alpha1.ReasonSecretNotFound, "it is missing") {
		t.Error("the same problem is written again and again")
	}
	if !NoteSecrets(w.n, v1alpha1.ReasonSecretRefused, "it is short") || ready(w).Reason != v1alpha1.ReasonSecretRefused {
		t.Errorf("with another problem: %+v", ready(w))
	}
	if !NoteSecrets(w.n, "", "") || ready(w).Reason != v1alpha1.ReasonNothingSent {
		t.Errorf("after the problem: %+v", ready(w))
	}
	// A delivery since the spec was written is remembered.
	w.n.Status.Last = &v1alpha1.NotificationMessage{DeliveredAt: new(metav1.Now())}
	NoteSecrets(w.n, v1alpha1.ReasonSecretNotFound, "it is missing")
	if !NoteSecrets(w.n, "", "") || ready(w).Reason != v1alpha1.ReasonDelivered {
		t.Errorf("after a delivery and the problem: %+v", ready(w))
	}
	// A failed attempt says more.
	condition.Stalled(&w.n.Status.Conditions, 3, v1alpha1.ReasonDeliveryFailed, "HTTP 410")
	if NoteSecrets(w.n, v1alpha1.ReasonSecretNotFound, "it is missing") || NoteSecrets(w.n, "", "") || ready(w).Reason != v1alpha1.ReasonDeliveryFailed {
		t.Errorf("after a failed attempt: %+v", ready(w))
	}
}
