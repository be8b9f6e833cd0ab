package registry

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/hykube/hykube/api/v1alpha1"
)

func notificationOf(change func(*v1alpha1.NotificationSpec)) *v1alpha1.Notification {
	n := &v1alpha1.Notification{ObjectMeta: metav1.ObjectMeta{Name: "team", Namespace: "prod"}}
	n.Spec.Webhook.URL = "https://example.com/hook"
	if change != nil {
		change(&n.Spec)
	}
	setNotificationDefaults(n)
	return n
}

func TestValidateNotification(t *testing.T) {
	key := v1alpha1.SecretKey{Name: "hook", Key: "url"}
	for why, tc := range map[string]struct {
		change func(*v1alpha1.NotificationSpec)
		want   string // empty for a valid one
	}{
		"the defaults":              {nil, ""},
		"an address in a Secret":    {func(s *v1alpha1.NotificationSpec) { s.Webhook.URL, s.Webhook.URLFrom = "", &key }, ""},
		"no address":                {func(s *v1alpha1.NotificationSpec) { s.Webhook.URL = "" }, "spec.webhook.url"},
		"two addresses":             {func(s *v1alpha1.NotificationSpec) { s.Webhook.URLFrom = &key }, "spec.webhook.url"},
		"http":                      {func(s *v1alpha1.NotificationSpec) { s.Webhook.URL = "http://example.com" }, "spec.webhook.url"},
		"a password in the address": {func(s *v1alpha1.NotificationSpec) { s.Webhook.URL = "https://user:hunter2@example.com" }, "spec.webhook.url"},
		"a long address":            {func(s *v1alpha1.NotificationSpec) { s.Webhook.URL += strings.Repeat("x", maxURL) }, "spec.webhook.url"},
		"an unknown reason":         {func(s *v1alpha1.NotificationSpec) { s.Reasons = []v1alpha1.NotificationReason{"Bored"} }, "spec.reasons[0]"},
		"a reason twice":            {func(s *v1alpha1.NotificationSpec) { s.Reasons = []v1alpha1.NotificationReason{"Failed", "Failed"} }, "spec.reasons[1]"},
		"an unknown format":         {func(s *v1alpha1.NotificationSpec) { s.Webhook.Format = "Fax" }, "spec.webhook.format"},
		"a long text":               {func(s *v1alpha1.NotificationSpec) { s.Text = strings.Repeat("ü", 501) }, "spec.text"},
		"a text of 500 characters":  {func(s *v1alpha1.NotificationSpec) { s.Text = strings.Repeat("ü", 500) }, ""},
		"a bad label": {func(s *v1alpha1.NotificationSpec) {
			s.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"a b": "c"}}
		}, "spec.selector.matchLabels"},
		"a header that Hykube sets": {func(s *v1alpha1.NotificationSpec) {
			s.Webhook.HeadersFrom = []v1alpha1.WebhookHeader{{Name: "Host", SecretKey: key}}
		}, "spec.webhook.headersFrom[0].name"},
		"a header twice": {func(s *v1alpha1.NotificationSpec) {
			s.Webhook.HeadersFrom = []v1alpha1.WebhookHeader{{Name: "X-A", SecretKey: key}, {Name: "x-a", SecretKey: key}}
		}, "spec.webhook.headersFrom[1].name"},
		"many headers":               {func(s *v1alpha1.NotificationSpec) { s.Webhook.HeadersFrom = make([]v1alpha1.WebhookHeader, 11) }, "spec.webhook.headersFrom"},
		"a Secret without a name":    {func(s *v1alpha1.NotificationSpec) { s.Webhook.SigningKeyFrom = &v1alpha1.SecretKey{Key: "x"} }, "spec.webhook.signingKeyFrom.name"},
		"a Secret without a key":     {func(s *v1alpha1.NotificationSpec) { s.Webhook.SigningKeyFrom = &v1alpha1.SecretKey{Name: "x"} }, "spec.webhook.signingKeyFrom.key"},
		"a bundle without authority": {func(s *v1alpha1.NotificationSpec) { s.Webhook.CABundle = "x" }, "spec.webhook.caBundle"},
	} {
		errs := validateNotification(notificationOf(tc.change))
		if (len(errs) > 0) != (tc.want != "") || tc.want != "" && errs[0].Field != tc.want {
			t.Errorf("%s: %v, want %q", why, errs, tc.want)
		}
		if text := errs.ToAggregate(); text != nil && strings.Contains(text.Error(), "hunter2") {
			t.Errorf("%s: the error has the address: %s", why, text)
		}
	}
}

func TestRightsOfTheAuthorOfANotification(t *testing.T) {
	secret := func(s *v1alpha1.NotificationSpec) {
		s.Webhook.URL, s.Webhook.URLFrom = "", &v1alpha1.SecretKey{Name: "hook", Key: "url"}
	}
	header := func(s *v1alpha1.NotificationSpec) {
		s.Webhook.HeadersFrom = []v1alpha1.WebhookHeader{{Name: "X-A", SecretKey: v1alpha1.SecretKey{Name: "hook", Key: "x"}}}
	}
	signing := func(s *v1alpha1.NotificationSpec) {
		s.Webhook.SigningKeyFrom = &v1alpha1.SecretKey{Name: "hook", Key: "x"}
	}
	suspend := func(s *v1alpha1.NotificationSpec) { secret(s); s.Suspend = true }
	suspendElsewhere := func(s *v1alpha1.NotificationSpec) { s.Suspend = true }
	for why, tc := range map[string]struct {
		n, old  *v1alpha1.Notification
		denied  string
		refused bool
	}{
		"all rights":                          {n: notificationOf(secret)},
		"no right to plans":                   {n: notificationOf(nil), denied: "plans", refused: true},
		"no right to stacks":                  {n: notificationOf(nil), denied: "stacks", refused: true},
		"no right to the address":             {n: notificationOf(secret), denied: "secrets", refused: true},
		"no right to a header":                {n: notificationOf(header), denied: "secrets", refused: true},
		"no right to the signing key":         {n: notificationOf(signing), denied: "secrets", refused: true},
		"nothing changes":                     {n: notificationOf(secret), old: notificationOf(secret), denied: "secrets"},
		"it is suspended":                     {n: notificationOf(suspend), old: notificationOf(secret), denied: "secrets"},
		"it is suspended and sends elsewhere": {n: notificationOf(suspendElsewhere), old: notificationOf(secret), denied: "plans", refused: true},
		"it goes on":                          {n: notificationOf(secret), old: notificationOf(suspend), denied: "secrets", refused: true},
	} {
		ctx := genericapirequest.WithUser(t.Context(), &user.DefaultInfo{Name: "alice"})
		c := Config{Authorizer: authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
			if a.GetResource() == tc.denied {
				return authorizer.DecisionNoOpinion, "", nil
			}
			return authorizer.DecisionAllow, "", nil
		})}
		err := c.mayWriteNotification(ctx, tc.n, tc.old)
		if apierrors.IsForbidden(err) != tc.refused || err != nil && !tc.refused {
			t.Errorf("%s: %v, want refused: %t", why, err, tc.refused)
		}
	}
}
