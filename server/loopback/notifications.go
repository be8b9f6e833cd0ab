package loopback

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/store"
)

// Notifications reads the Plans and Stacks that messages of Notifications describe, and writes the status of
// Notifications. It implements notifying.Objects.
type Notifications struct {
	Client rest.Interface
	Plans  store.Plans
	Stacks *Stacks
}

// Notification implements notifying.Objects.
func (k *Notifications) Notification(ctx context.Context, namespace, name string,
	uid types.UID) (*v1alpha1.Notification, error) {
	n := &v1alpha1.Notification{}
	err := asGone(k.Client.Get().Namespace(namespace).Resource("notifications").Name(name).Do(ctx).Into(n))
	if err == nil && n.UID != uid {
		err = store.ErrGone
	}
	return n, err
}

// UpdateNotification implements notifying.Objects.
func (k *Notifications) UpdateNotification(ctx context.Context, namespace, name string, uid types.UID,
	change func(*v1alpha1.NotificationStatus)) error {
	return asGone(Update(ctx, k.Client, "notifications", namespace, name, "status",
		func(n *v1alpha1.Notification) error {
			if n.UID != uid {
				return store.ErrGone
			}
			change(&n.Status)
			return nil
		}))
}

// Plan implements notifying.Objects.
func (k *Notifications) Plan(ctx context.Context, namespace, name string, uid types.UID) (*v1alpha1.Plan, error) {
	return k.Plans.Get(ctx, namespace, name, uid)
}

// Stack implements notifying.Objects.
func (k *Notifications) Stack(ctx context.Context, namespace, name string, uid types.UID) (*v1alpha1.Stack, error) {
	return k.Stacks.Get(ctx, namespace, name, uid)
}
