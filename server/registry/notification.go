package registry

import (
	"context"
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/apiserver/pkg/warning"

	"github.com/hykube/hykube/activities/notifying"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/notification"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/internal/webhook"
	"github.com/hykube/hykube/server/storage"
)

const (
	maxNotificationText = 500
	maxHeaders          = 10
	maxURL              = 2048
	maxCABundle         = 64 << 10
)

func newNotifications(c Config) (*resourceREST, *statusREST, error) {
	secrets := storedSecrets{c.StoredObjects}
	begin := func(ctx context.Context, n *v1alpha1.Notification, generation int64) {
		n.Status.ObservedGeneration, n.Status.Since = generation, new(metav1.Now())
		noteSecrets(ctx, secrets, n, generation)
	}
	strategy := kindStrategy[*v1alpha1.Notification, v1alpha1.NotificationStatus]{
		ObjectTyper:   c.Codecs.Scheme,
		NameGenerator: names.SimpleNameGenerator,
		namespaced:    true,
		begin: func(ctx context.Context, n *v1alpha1.Notification) {
			n.Status = v1alpha1.NotificationStatus{Author: requester(ctx)}
			begin(ctx, n, 1)
		},
		prepareUpdate: func(ctx context.Context, n, old *v1alpha1.Notification) {
			if sameSpec(n.Spec, old.Spec) {
				return
			}
			begin(ctx, n, old.Generation+1)
			if !onlySuspends(n, old) {
				n.Status.Author = requester(ctx)
			}
		},
		spec:       func(n *v1alpha1.Notification) any { return n.Spec },
		status:     func(n *v1alpha1.Notification) *v1alpha1.NotificationStatus { return &n.Status },
		conditions: func(s *v1alpha1.NotificationStatus) *[]metav1.Condition { return &s.Conditions },
		validate:   validateNotification,
		keepOwn:    func(s, old *v1alpha1.NotificationStatus) { s.Author, s.Since = old.Author, old.Since },
		mayWriteStatus: func(ctx context.Context, _, _ *v1alpha1.Notification) field.ErrorList {
			return statusByServer(ctx, "a Notification")
		},
	}
	stored, status, err := newStore(c, "notification", new(v1alpha1.Notification), new(v1alpha1.NotificationList),
		strategy, notificationTable)
	if err != nil {
		return nil, nil, err
	}
	mayWrite := func(ctx context.Context, obj, old runtime.Object) error {
		before, _ := old.(*v1alpha1.Notification)
		if before == nil {
			if err := checkNotificationLimit(ctx, stored, obj.(*v1alpha1.Notification).Name); err != nil {
				return err
			}
		}
		n := obj.(*v1alpha1.Notification)
		if err := c.mayWriteNotification(ctx, n, before); err != nil {
			return err
		}
		// Only now, because the warning tells whether a Secret has a key.
		if before == nil || !sameSpec(n.Spec, before.Spec) {
			warnOfSecrets(ctx, n)
		}
		return nil
	}
	return &resourceREST{Store: stored, short: "ntf", mayWrite: mayWrite}, status, nil
}

// maxNotifications is the maximum number of Notifications of a namespace. Each plan may cause a message of each.
const maxNotifications = 20

// checkNotificationLimit returns an error if the namespace already has the maximum number of Notifications.
func checkNotificationLimit(ctx context.Context, stored rest.Lister, name string) error {
	list, err := stored.List(ctx, &metainternalversion.ListOptions{})
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("count notifications: %w", err))
	}
	if n := meta.LenList(list); n >= maxNotifications {
		return apierrors.NewForbidden(v1alpha1.Resource("notifications"), name,
			fmt.Errorf("the namespace has %d Notifications, and may have no more: delete one, or let one receiver distribute the messages", n))
	}
	return nil
}

// storedSecrets reads Secrets from the storage. It implements notifying.Secrets.
type storedSecrets struct{ objects *storage.Objects }

func (s storedSecrets) Secret(ctx context.Context, namespace, name, key string) ([]byte, error) {
	u, err := s.objects.Get(ctx, schema.GroupResource{Resource: "secrets"}, namespace, name)
	if err != nil {
		return nil, fmt.Errorf("read secret %q: %w", name, err)
	}
	if u == nil {
		return nil, &store.SecretError{Namespace: namespace, Name: name}
	}
	var secret corev1.Secret
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &secret); err != nil {
		return nil, fmt.Errorf("read secret %q: %w", name, err)
	}
	value, ok := secret.Data[key]
	if !ok {
		return nil, &store.SecretError{Namespace: namespace, Name: name, Key: key}
	}
	return value, nil
}

// noteSecrets sets the conditions of a Notification whose spec was written. The controller checks the Secrets again, so
// an error of a read changes nothing here.
func noteSecrets(ctx context.Context, secrets notifying.Secrets, n *v1alpha1.Notification, generation int64) {
	notifying.SetIdle(n, generation)
	of := &v1alpha1.Notification{ObjectMeta: metav1.ObjectMeta{Namespace: request.NamespaceValue(ctx),
		Generation: generation}, Spec: n.Spec, Status: n.Status}
	if reason, text, err := notifying.CheckSecrets(ctx, secrets, of); err == nil && notifying.NoteSecrets(of, reason,
		text) {
		n.Status = of.Status
	}
}

// warnOfSecrets warns the author of a Notification whose Secrets have a problem.
func warnOfSecrets(ctx context.Context, n *v1alpha1.Notification) {
	for _, c := range n.Status.Conditions {
		if c.Type == v1alpha1.ConditionReady && (c.Reason == v1alpha1.ReasonSecretNotFound ||
			c.Reason == v1alpha1.ReasonSecretRefused) {
			warning.AddWarning(ctx, "", c.Message)
		}
	}
}

// onlySuspends reports whether a change only suspends a Notification, so that a user without the rights of its author
// can stop it.
func onlySuspends(n, old *v1alpha1.Notification) bool {
	before := old.Spec
	before.Suspend = true
	return n.Spec.Suspend && sameSpec(n.Spec, before)
}

// mayWriteNotification checks the rights of the author, because the server reads Secrets, plans and stacks for the
// Notification, and sends them to others. old is nil for a new Notification.
func (c Config) mayWriteNotification(ctx context.Context, n, old *v1alpha1.Notification) error {
	if old != nil && (sameSpec(n.Spec, old.Spec) || onlySuspends(n, old)) {
		return nil
	}
	return requireRights(ctx, c.Authorizer, "notifications", n.Name, store.RightsOfNotification(n),
		"the server sends messages with the rights of the user who writes the Notification")
}

// setNotificationDefaults sets the defaults of a Notification.
func setNotificationDefaults(n *v1alpha1.Notification) {
	if len(n.Spec.Reasons) == 0 {
		n.Spec.Reasons = slices.Clone(notification.Reasons)
	}
	if n.Spec.Webhook.Format == "" {
		n.Spec.Webhook.Format = v1alpha1.FormatCloudEvents
	}
}

func validateNotification(n *v1alpha1.Notification) field.ErrorList {
	errs, spec := validateObjectName(n.Name), field.NewPath("spec")
	for i, reason := range n.Spec.Reasons {
		errs = append(errs, validateEnum(reason, spec.Child("reasons").Index(i), notification.Reasons...)...)
		if slices.Contains(n.Spec.Reasons[:i], reason) {
			errs = append(errs, field.Duplicate(spec.Child("reasons").Index(i), reason))
		}
	}
	if n.Spec.Selector != nil {
		errs = append(errs, metav1validation.ValidateLabelSelector(n.Spec.Selector,
			metav1validation.LabelSelectorValidationOptions{}, spec.Child("selector"))...)
	}
	if utf8.RuneCountInString(n.Spec.Text) > maxNotificationText {
		errs = append(errs, field.TooLong(spec.Child("text"), "", maxNotificationText))
	}
	return append(errs, validateWebhook(n.Spec.Webhook, spec.Child("webhook"))...)
}

func validateWebhook(w v1alpha1.Webhook, path *field.Path) field.ErrorList {
	errs := validateEnum(w.Format, path.Child("format"), v1alpha1.FormatCloudEvents, v1alpha1.FormatSlack,
		v1alpha1.FormatTeams)
	switch url := path.Child("url"); {
	case (w.URL == "") == (w.URLFrom == nil):
		errs = append(errs, field.Required(url, "write either url, or urlFrom with a Secret that has it"))
	case w.URLFrom != nil:
		errs = append(errs, validateSecretKey(*w.URLFrom, path.Child("urlFrom"))...)
	case len(w.URL) > maxURL:
		errs = append(errs, field.TooLong(url, "", maxURL))
	default:
		// The error does not repeat the address, which may have a credential.
		if err := webhook.CheckURL(w.URL); err != nil {
			errs = append(errs, field.Invalid(url, "(the address)", err.Error()))
		}
	}
	if len(w.HeadersFrom) > maxHeaders {
		errs = append(errs, field.TooMany(path.Child("headersFrom"), len(w.HeadersFrom), maxHeaders))
	}
	seen := map[string]bool{}
	for i, h := range w.HeadersFrom {
		at := path.Child("headersFrom").Index(i)
		if err := webhook.CheckHeaderName(h.Name); err != nil {
			errs = append(errs, field.Invalid(at.Child("name"), shorten(h.Name), err.Error()))
		}
		if name := strings.ToLower(h.Name); seen[name] {
			errs = append(errs, field.Duplicate(at.Child("name"), shorten(h.Name)))
		} else {
			seen[name] = true
		}
		errs = append(errs, validateSecretKey(h.SecretKey, at.Child("secretKey"))...)
	}
	if w.SigningKeyFrom != nil {
		errs = append(errs, validateSecretKey(*w.SigningKeyFrom, path.Child("signingKeyFrom"))...)
	}
	if len(w.CABundle) > maxCABundle {
		errs = append(errs, field.TooLong(path.Child("caBundle"), "", maxCABundle))
	} else if w.CABundle != "" && !x509.NewCertPool().AppendCertsFromPEM([]byte(w.CABundle)) {
		errs = append(errs, field.Invalid(path.Child("caBundle"), "(the bundle)", "it has no PEM certificate"))
	}
	return errs
}

func validateSecretKey(k v1alpha1.SecretKey, path *field.Path) (errs field.ErrorList) {
	for _, message := range validation.IsDNS1123Subdomain(k.Name) {
		errs = append(errs, field.Invalid(path.Child("name"), shorten(k.Name), message))
	}
	for _, message := range validation.IsConfigMapKey(k.Key) {
		errs = append(errs, field.Invalid(path.Child("key"), shorten(k.Key), message))
	}
	return errs
}

var notificationTable = tableConvertor{
	columns: []metav1.TableColumnDefinition{
		nameColumn, readyColumn, reasonColumn,
		column("Format", "string", "Form of the messages.", 0),
		column("Delivered", "integer", "Number of messages that the receiver accepted.", 0),
		column("Last", "string", "Object of the last message.", 0),
		ageColumn,
		column("Failed", "integer", "Number of messages that were given up.", 1),
		whyColumn,
	},
	cells: func(obj runtime.Object) []any {
		n := obj.(*v1alpha1.Notification)
		ready, reason, message := readinessCells(n, n.Status.Conditions)
		last := "<none>"
		if m := n.Status.Last; m != nil {
			last = "summary"
			if m.Name != "" {
				last = strings.ToLower(m.Kind) + "/" + m.Name
			}
		}
		return []any{n.Name, ready, reason, string(n.Spec.Webhook.Format), n.Status.Delivered, last,
			age(n.CreationTimestamp), n.Status.Failed, message}
	},
}
