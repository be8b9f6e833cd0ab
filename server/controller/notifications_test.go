package controller

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	fcache "k8s.io/client-go/tools/cache/testing"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/server/loopback"
)

func TestCurrentTransitionsOfANotification(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC))
	plan := func(name, stack string, planned time.Time) *v1alpha1.Plan {
		p := &v1alpha1.Plan{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
		p.Status.PlannedAt = &metav1.Time{Time: planned}
		if stack != "" {
			p.Status.Stack = &v1alpha1.PlanStack{Stack: stack}
		}
		condition.Waiting(&p.Status.Conditions, 1, v1alpha1.ReasonAwaitingApproval, "")
		return p
	}
	drifted := &v1alpha1.Stack{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "web", Labels: map[string]string{"team": "a"}}}
	condition.Stalled(&drifted.Status.Conditions, 1, v1alpha1.ReasonDrifted, "")
	plain := &v1alpha1.Stack{ObjectMeta: metav1.ObjectMeta{Name: "plain", UID: "plain"}}
	plans := []*v1alpha1.Plan{
		plan("later", "", at.Add(time.Second)), plan("before", "", at.Add(-time.Second)), plan("same", "", at.Time), plan("web-1", "web", at.Add(2*time.Second)), plan("plain-1", "plain", at.Add(3*time.Second)),
	}
	for name, tc := range map[string]struct {
		change func(*v1alpha1.NotificationSpec)
		want   []string
	}{
		"all since the spec was written, oldest first": {func(*v1alpha1.NotificationSpec) {}, []string{"same", "later", "web-1", "plain-1", "web"}},
		"one reason": {func(s *v1alpha1.NotificationSpec) { s.Reasons = []v1alpha1.NotificationReason{v1alpha1.NotifyDrifted} }, []string{"web"}},
		"stacks with labels, and their plans": {func(s *v1alpha1.NotificationSpec) {
			s.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}
		}, []string{"web-1", "web"}},
		"stacks without a label": {func(s *v1alpha1.NotificationSpec) {
			s.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "team", Operator: metav1.LabelSelectorOpDoesNotExist}}}
		}, []string{"plain-1"}},
	} {
		n := &v1alpha1.Notification{Status: v1alpha1.NotificationStatus{Since: &at}}
		n.Spec.Reasons = []v1alpha1.NotificationReason{v1alpha1.NotifyAwaitingApproval, v1alpha1.NotifyDrifted}
		tc.change(&n.Spec)
		var got []string
		for _, tr := range currentOf(n, plans, []*v1alpha1.Stack{plain, drifted}) {
			got = append(got, tr.Name)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// apiWithNotification serves one Notification and one Secret, and counts the writes of the status.
type apiWithNotification struct {
	n      *v1alpha1.Notification
	writes int
}

func (a *apiWithNotification) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPut {
		a.writes++
		var sent v1alpha1.Notification
		if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		a.n.Status = sent.Status
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(a.n)
}

// secretsOfTest has the values of Secrets by their keys.
type secretsOfTest map[string]string

func (s secretsOfTest) Secret(_ context.Context, namespace, name, key string) ([]byte, error) {
	if s == nil {
		return nil, errors.New("the server cannot read Secrets")
	}
	if value, ok := s[key]; ok {
		return []byte(value), nil
	}
	return nil, &store.SecretError{Namespace: namespace, Name: name, Key: key}
}

// TestAMissingSecretIsShown deletes the Secret of a Notification and creates it again. The condition follows, although no
// message is due.
func TestAMissingSecretIsShown(t *testing.T) {
	n := &v1alpha1.Notification{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "Notification"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "team", UID: "n", Generation: 2}}
	n.Spec.Webhook.URLFrom = &v1alpha1.SecretKey{Name: "hook", Key: "url"}
	condition.Ready(&n.Status.Conditions, 2, v1alpha1.ReasonNothingSent, "")
	api := &apiWithNotification{n: n.DeepCopy()}
	served := httptest.NewServer(api)
	t.Cleanup(served.Close)
	config := &rest.Config{Host: served.URL, APIPath: "/apis", ContentConfig: rest.ContentConfig{GroupVersion: &v1alpha1.SchemeGroupVersion, NegotiatedSerializer: scheme.Codecs}}
	client, err := loopback.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	plans, stacks := &Plans{}, &Stacks{}
	plans.informer = cache.NewSharedIndexInformer(nil, &v1alpha1.Plan{}, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	stacks.informer = cache.NewSharedIndexInformer(nil, &v1alpha1.Stack{}, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	c := &Notifications{Client: client, Logger: slog.New(slog.DiscardHandler)}
	source := fcache.NewFakeControllerSource()
	secrets := cache.NewSharedIndexInformer(source, &corev1.Secret{}, 0, nil)
	c.start(plans, stacks, secrets)
	for _, step := range []struct {
		what    string
		secrets secretsOfTest
		reason  string
		writes  int
	}{
		{"the Secret is there", secretsOfTest{"url": "https://example.com"}, v1alpha1.ReasonNothingSent, 0},
		{"it is deleted", secretsOfTest{}, v1alpha1.ReasonSecretNotFound, 1},
		{"nothing changed", secretsOfTest{}, v1alpha1.ReasonSecretNotFound, 1},
		{"it is there again", secretsOfTest{"url": "https://example.com"}, v1alpha1.ReasonNothingSent, 2},
	} {
		if err := c.informer.GetStore().Add(api.n.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		c.Secrets = step.secrets
		if err := c.reconcile(t.Context(), cache.MetaObjectToName(n)); err != nil {
			t.Fatalf("%s: %v", step.what, err)
		}
		if ready := meta.FindStatusCondition(api.n.Status.Conditions, v1alpha1.ConditionReady); ready.Reason != step.reason || api.writes != step.writes {
			t.Errorf("%s: the condition is %+v after %d writes, want %s after %d", step.what, ready, api.writes, step.reason, step.writes)
		}
	}
	// The queue tries again after a failed read.
	c.Secrets = secretsOfTest(nil)
	if err := c.reconcile(t.Context(), cache.MetaObjectToName(n)); err == nil {
		t.Error("a failed read is no error")
	}
	// A new Secret queues the Notification that names it.
	source.Add(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "other"}})
	source.Add(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "dev", Name: "hook"}})
	source.Add(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "hook"}})
	go secrets.RunWithContext(t.Context())
	deadline := time.Now().Add(10 * time.Second)
	for c.queue.work.Len() == 0 && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
	if got := c.queue.work.Len(); got != 1 {
		t.Errorf("%d Notifications are queued, want 1", got)
	}
}

// TestSecretsOfNotifications names Secrets in each field.
func TestSecretsOfNotifications(t *testing.T) {
	c := &Notifications{Logger: slog.New(slog.DiscardHandler)}
	c.queue = newQueue("notification", c.Logger, c.reconcile)
	c.informer = informer(nil, "notifications", &v1alpha1.Notification{}, c.queue)
	n := &v1alpha1.Notification{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "team"}}
	n.Spec.Webhook = v1alpha1.Webhook{URLFrom: &v1alpha1.SecretKey{Name: "url"}, SigningKeyFrom: &v1alpha1.SecretKey{Name: "key"},
		HeadersFrom: []v1alpha1.WebhookHeader{{SecretKey: v1alpha1.SecretKey{Name: "header"}}}}
	if err := c.informer.GetIndexer().Add(n); err != nil {
		t.Fatal(err)
	}
	for _, of := range []struct {
		namespace, name string
		want            int
	}{{"prod", "url", 1}, {"prod", "key", 1}, {"prod", "header", 1}, {"prod", "other", 0}, {"dev", "url", 0}} {
		c.secretChanged(&metav1.ObjectMeta{Namespace: of.namespace, Name: of.name})
		if got := c.queue.work.Len(); got != of.want {
			t.Errorf("the Secret %s/%s queues %d Notifications, want %d", of.namespace, of.name, got, of.want)
		}
		for range c.queue.work.Len() {
			name, _ := c.queue.work.Get()
			c.queue.work.Done(name)
		}
	}
}
