// Package notifying sends the messages of Notifications. At each attempt, it checks the rights of the author and reads
// the Secrets. Temporal stores only names: no address, no header and no text of a message.
package notifying

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/fair"
	"github.com/hykube/hykube/internal/metrics"
	"github.com/hykube/hykube/internal/notification"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/internal/webhook"
	"github.com/hykube/hykube/workflows"
)

// Objects reads Notifications and the objects of their messages, and writes the status of Notifications. The methods
// return store.ErrGone if there is no object with the UID.
type Objects interface {
	Notification(ctx context.Context, namespace, name string, uid types.UID) (*v1alpha1.Notification, error)
	UpdateNotification(ctx context.Context, namespace, name string, uid types.UID,
		change func(*v1alpha1.NotificationStatus)) error
	Plan(ctx context.Context, namespace, name string, uid types.UID) (*v1alpha1.Plan, error)
	Stack(ctx context.Context, namespace, name string, uid types.UID) (*v1alpha1.Stack, error)
}

// Secrets reads keys of Secrets; see store.Configs.
type Secrets interface {
	Secret(ctx context.Context, namespace, name, key string) ([]byte, error)
}

// Sender sends requests; *webhook.Client implements it.
type Sender interface {
	Send(ctx context.Context, r webhook.Request) (code int, err error)
}

const (
	// concurrent is the maximum number of requests at once, and perNamespace that of one namespace. So a receiver that
	// does not answer delays only the messages of its own namespace.
	concurrent   = 32
	perNamespace = 4
)

// Notifier implements the activities. Every field but Metrics is required.
type Notifier struct {
	Objects Objects
	Secrets Secrets
	Access  store.Access
	Sender  Sender
	Metrics *metrics.Metrics
	Logger  *slog.Logger

	slots *fair.Slots
}

// Register registers the activities with a worker.
func (n *Notifier) Register(w worker.ActivityRegistry) {
	n.slots = fair.NewLimited(concurrent, perNamespace)
	w.RegisterActivityWithOptions(n.Deliver, activity.RegisterOptions{Name: workflows.ActivityDeliver})
	w.RegisterActivityWithOptions(n.GiveUp, activity.RegisterOptions{Name: workflows.ActivityGiveUp})
}

// problem is a reason why a message cannot be sent. Its text has no address and no value of a Secret.
type problem struct {
	reason, text string
	// permanent problems recur until a user changes something.
	permanent bool
	code      int
}

func (p *problem) Error() string { return p.text }

// Deliver makes one attempt to send a message. It returns an error if the receiver did not accept the message: a final
// one if another attempt does not help.
func (n *Notifier) Deliver(ctx context.Context, d workflows.Delivery) (workflows.Delivered, error) {
	obj, err := n.Objects.Notification(ctx, d.Namespace, d.Name, types.UID(d.UID))
	if errors.Is(err, store.ErrGone) {
		return workflows.Delivered{Gone: true}, nil
	}
	if err != nil || obj.Spec.Suspend {
		return workflows.Delivered{}, err
	}
	slot, err := n.slots.Acquire(ctx, d.Namespace)
	if err != nil {
		return workflows.Delivered{}, err
	}
	defer slot.Release()
	message, err := n.message(ctx, obj, d)
	if message == nil || err != nil {
		return workflows.Delivered{}, store.IgnoreGone(err) // the message is outdated
	}
	message.Text = obj.Spec.Text
	code, err := n.send(ctx, obj, *message)
	if why, ok := errors.AsType[*problem](err); ok {
		return workflows.Delivered{}, n.recordFailure(ctx, obj, d, message.ID, why)
	}
	if err != nil {
		return workflows.Delivered{}, err
	}
	n.Metrics.Notification(string(obj.Spec.Webhook.Format), metrics.NotificationDelivered)
	// Another attempt would send the message again, so an error of this write is only logged.
	n.writeStatus(context.WithoutCancel(ctx), obj, d,
		func(s *v1alpha1.NotificationStatus, last *v1alpha1.NotificationMessage) {
			last.Attempts, last.Code, last.DeliveredAt = d.Attempt, int32(code), new(metav1.Now())
			s.Delivered++
			condition.Ready(&s.Conditions, obj.Generation, v1alpha1.ReasonDelivered, messageDelivered)
		})
	return workflows.Delivered{Sent: true}, nil
}

// message returns the message of a delivery. It returns nil if the transition of the object is no longer current.
func (n *Notifier) message(ctx context.Context, obj *v1alpha1.Notification,
	d workflows.Delivery) (*notification.Message, error) {
	t := d.Transition
	if t == nil {
		return new(notification.AboutLeftOut(d.ID, d.Namespace, d.At, d.LeftOut)), nil
	}
	switch t.Kind {
	case notification.KindPlan:
		p, err := n.Objects.Plan(ctx, d.Namespace, t.Name, t.UID)
		if err != nil {
			return nil, err
		}
		if now, ok := notification.OfPlan(p); ok && now.ID == t.ID {
			return new(notification.AboutPlan(*t, p)), nil
		}
	case notification.KindStack:
		s, err := n.Objects.Stack(ctx, d.Namespace, t.Name, t.UID)
		if err != nil {
			return nil, err
		}
		if now, ok := notification.OfStack(s); ok && now.ID == t.ID {
			return new(notification.AboutStack(*t, s)), nil
		}
	}
	return nil, nil
}

// send sends a message with the rights that the author has now. It returns a *problem if that is not possible.
func (n *Notifier) send(ctx context.Context, obj *v1alpha1.Notification, m notification.Message) (code int, err error) {
	if err := n.authorize(ctx, obj); err != nil {
		return 0, err
	}
	w := obj.Spec.Webhook
	body, contentType, err := m.Encode(w.Format)
	if err != nil {
		return 0, fmt.Errorf("encode message: %w", err)
	}
	from, err := read(ctx, n.Secrets, obj)
	if err != nil {
		return 0, err
	}
	r := webhook.Request{URL: from.url, Body: body, Header: from.header, CABundle: []byte(w.CABundle)}
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("User-Agent", "hykube")
	if from.signingKey != nil {
		if err := webhook.Sign(r.Header, from.signingKey, m.ID, time.Now(), body); err != nil {
			return 0, fmt.Errorf("sign message: %w", err)
		}
	}
	code, err = n.Sender.Send(ctx, r)
	if why, ok := errors.AsType[*webhook.Error](err); ok {
		return code, &problem{v1alpha1.ReasonDeliveryFailed, why.Error(), why.Permanent(), why.Code}
	}
	return code, err
}

// authorize checks the rights of the author. It returns a *problem if one is missing.
func (n *Notifier) authorize(ctx context.Context, obj *v1alpha1.Notification) error {
	author := obj.Status.Author
	if author == nil {
		return &problem{reason: v1alpha1.ReasonMissingRights,
			text: "the Notification has no author; write its spec again", permanent: true}
	}
	asker := store.Asker{Access: n.Access, Who: *author}
	missing, err := asker.Missing(ctx, store.RightsOfNotification(obj))
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return &problem{reason: v1alpha1.ReasonMissingRights, permanent: true,
			text: fmt.Sprintf("the user %q, who wrote the Notification, has no right to %s", author.Username,
				store.ListRights(missing))}
	}
	return nil
}

// recordFailure notes a failed attempt, and returns the error of the activity.
func (n *Notifier) recordFailure(ctx context.Context, obj *v1alpha1.Notification, d workflows.Delivery, id string,
	why *problem) error {
	if why.permanent {
		result := metrics.NotificationFailed
		if why.reason == v1alpha1.ReasonMissingRights || why.code == 0 {
			result = metrics.NotificationRefused
		}
		n.Metrics.Notification(string(obj.Spec.Webhook.Format), result)
	} else {
		n.Metrics.Notification(string(obj.Spec.Webhook.Format), metrics.NotificationRetried)
	}
	n.writeStatus(ctx, obj, d, func(s *v1alpha1.NotificationStatus, last *v1alpha1.NotificationMessage) {
		last.Attempts, last.Code = d.Attempt, int32(why.code)
		if why.permanent {
			reason := v1alpha1.ReasonDeliveryFailed
			if why.reason == v1alpha1.ReasonMissingRights {
				reason = why.reason
			}
			condition.Stalled(&s.Conditions, obj.Generation, reason, "The server gave up on a message: "+why.text+".")
			return
		}
		condition.Reconciling(&s.Conditions, obj.Generation, v1alpha1.ReasonDeliveryRetrying,
			fmt.Sprintf("Attempt %d to send a message failed, and the server tries again for up to %s: %s.", d.Attempt,
				workflows.DeliveryTimeout, why.text))
	})
	n.Logger.Warn("cannot send a message of a notification", "namespace", d.Namespace, "name", d.Name, "message", id,
		"attempt", d.Attempt, "reason", why.text)
	if why.permanent {
		return temporal.NewNonRetryableApplicationError(why.text, workflows.ErrorFinal, nil)
	}
	return temporal.NewApplicationError(why.text, "NotAccepted")
}

// GiveUp records in the status that the server stops trying to send a message.
func (n *Notifier) GiveUp(ctx context.Context, d workflows.Delivery) error {
	obj, err := n.Objects.Notification(ctx, d.Namespace, d.Name, types.UID(d.UID))
	if err != nil {
		return store.IgnoreGone(err)
	}
	return store.IgnoreGone(n.Objects.UpdateNotification(ctx, d.Namespace, d.Name, obj.UID,
		func(s *v1alpha1.NotificationStatus) {
			s.Failed++
			for _, c := range s.Conditions {
				if c.Type == v1alpha1.ConditionReady && c.Reason == v1alpha1.ReasonDeliveryRetrying {
					n.Metrics.Notification(string(obj.Spec.Webhook.Format), metrics.NotificationFailed)
					condition.Stalled(&s.Conditions, obj.Generation, v1alpha1.ReasonDeliveryFailed,
						"The server gave up on a message. "+c.Message)
				}
			}
		}))
}

// writeStatus writes the status of a Notification with its last message.
func (n *Notifier) writeStatus(ctx context.Context, obj *v1alpha1.Notification, d workflows.Delivery,
	change func(*v1alpha1.NotificationStatus, *v1alpha1.NotificationMessage)) {
	err := n.Objects.UpdateNotification(ctx, d.Namespace, d.Name, obj.UID, func(s *v1alpha1.NotificationStatus) {
		last := &v1alpha1.NotificationMessage{ID: d.ID}
		if t := d.Transition; t != nil {
			last = &v1alpha1.NotificationMessage{ID: t.ID, Reason: t.Reason, Kind: t.Kind, Name: t.Name, UID: t.UID}
		}
		change(s, last)
		s.Last = last
	})
	if err != nil && !errors.Is(err, store.ErrGone) {
		n.Logger.Warn("cannot write the status of a notification", "namespace", d.Namespace, "name", d.Name, "error",
			err)
	}
}
