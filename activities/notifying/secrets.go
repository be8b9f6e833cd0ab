package notifying

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/internal/webhook"
)

// maxSecret is the maximum size of a value from a Secret in bytes.
const maxSecret = 8 << 10

// messageDelivered is the message of the condition after a delivery.
const messageDelivered = "The receiver accepted the last message."

// values are the address, the headers and the signing key of a Notification.
type values struct {
	url        string
	header     http.Header
	signingKey []byte
}

// read reads the Secrets of a Notification. It returns a *problem if a key is missing, or if its value does not fit.
func read(ctx context.Context, secrets Secrets, n *v1alpha1.Notification) (v values, err error) {
	w := n.Spec.Webhook
	v.url, v.header = w.URL, http.Header{}
	if w.URLFrom != nil {
		url, err := secret(ctx, secrets, n.Namespace, *w.URLFrom)
		if err != nil {
			return v, err
		}
		v.url = strings.TrimSpace(string(url))
		if err := webhook.CheckURL(v.url); err != nil {
			return v, refused(*w.URLFrom, "is no valid address: "+err.Error())
		}
	}
	for _, h := range w.HeadersFrom {
		value, err := secret(ctx, secrets, n.Namespace, h.SecretKey)
		if err != nil {
			return v, err
		}
		text := strings.TrimSpace(string(value))
		if err := webhook.CheckHeaderValue(text); err != nil {
			return v, refused(h.SecretKey, "is no valid header: "+err.Error())
		}
		v.header.Set(h.Name, text)
	}
	if w.SigningKeyFrom != nil {
		if v.signingKey, err = secret(ctx, secrets, n.Namespace, *w.SigningKeyFrom); err != nil {
			return v, err
		}
		if err := webhook.CheckKey(v.signingKey); err != nil {
			return v, refused(*w.SigningKeyFrom, "is no valid signing key: "+err.Error())
		}
	}
	return v, nil
}

// secret reads a key of a Secret. A missing key is not permanent, because a user may still create it.
func secret(ctx context.Context, secrets Secrets, namespace string, k v1alpha1.SecretKey) ([]byte, error) {
	value, err := secrets.Secret(ctx, namespace, k.Name, k.Key)
	if missing, ok := errors.AsType[*store.SecretError](err); ok {
		return nil, &problem{reason: v1alpha1.ReasonSecretNotFound, text: missing.Error()}
	}
	if err == nil && len(value) > maxSecret {
		return nil, refused(k, fmt.Sprintf("has more than %d bytes", maxSecret))
	}
	return value, err
}

// refused returns the problem of a value that does not fit. The text does not repeat the value.
func refused(k v1alpha1.SecretKey, why string) *problem {
	return &problem{reason: v1alpha1.ReasonSecretRefused, permanent: true,
		text: fmt.Sprintf("the key %q of the Secret %q %s", k.Key, k.Name, why)}
}

// CheckSecrets reads the Secrets that a Notification names, as an attempt to send a message does. It returns the reason
// and the text of a problem that would prevent the message, or "". It returns an error if it cannot read a Secret.
func CheckSecrets(ctx context.Context, secrets Secrets, n *v1alpha1.Notification) (reason, text string, err error) {
	if n.Spec.Suspend {
		return "", "", nil
	}
	_, err = read(ctx, secrets, n)
	if why, ok := errors.AsType[*problem](err); ok {
		return why.reason, why.text, nil
	}
	return "", "", err
}

// NoteSecrets sets the conditions of a Notification by the result of CheckSecrets. A Notification without a problem
// becomes Ready again. NoteSecrets keeps the conditions of an attempt that failed, because they say more. changed is
// false if it set none.
func NoteSecrets(n *v1alpha1.Notification, reason, text string) (changed bool) {
	ready := meta.FindStatusCondition(n.Status.Conditions, v1alpha1.ConditionReady)
	noted := ready != nil && (ready.Reason == v1alpha1.ReasonSecretNotFound ||
		ready.Reason == v1alpha1.ReasonSecretRefused)
	switch {
	case ready == nil, n.Spec.Suspend, ready.Status != metav1.ConditionTrue && !noted:
		return false
	case reason == "" && !noted:
		return false
	case reason == "":
		SetIdle(n, n.Generation)
		return true
	}
	message := fmt.Sprintf("The server cannot send messages: %s.", text)
	if ready.Reason == reason && ready.Message == message {
		return false
	}
	condition.Stalled(&n.Status.Conditions, n.Generation, reason, message)
	return true
}

// SetIdle sets the conditions of a Notification that has no message to send. generation is that of its spec.
func SetIdle(n *v1alpha1.Notification, generation int64) {
	s := &n.Status
	switch last := s.Last; {
	case n.Spec.Suspend:
		condition.Waiting(&s.Conditions, generation, v1alpha1.ReasonSuspended,
			"No message is sent, because spec.suspend is true.")
	case last != nil && last.DeliveredAt != nil && s.Since.Before(last.DeliveredAt):
		condition.Ready(&s.Conditions, generation, v1alpha1.ReasonDelivered, messageDelivered)
	default:
		condition.Ready(&s.Conditions, generation, v1alpha1.ReasonNothingSent,
			"No message was due since the spec was written.")
	}
}
