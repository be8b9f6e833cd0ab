package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Notification sends a message to a webhook when a plan of its namespace waits for an approval, fails or becomes stale,
// or when a stack fails or drifts. The server sends each message until the receiver accepts it, for up to six hours,
// with the rights of the user who wrote the Notification.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Notification struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// The messages and their receiver.
	// +optional
	Spec NotificationSpec `json:"spec,omitempty"`
	// The last message and its delivery.
	// +optional
	Status NotificationStatus `json:"status,omitempty"`
}

// NotificationReason is the kind of transition that a message reports.
type NotificationReason string

const (
	// NotifyAwaitingApproval: a plan waits for a decision.
	NotifyAwaitingApproval NotificationReason = "AwaitingApproval"
	// NotifyFailed: a plan or its apply failed, a policy denies the plan, or a stack cannot continue.
	NotifyFailed NotificationReason = "Failed"
	// NotifyDrifted: the infrastructure of a stack was changed outside of Hykube, and no plan corrects it.
	NotifyDrifted NotificationReason = "Drifted"
	// NotifyStale: an object or a state that a plan would change was changed after planning.
	NotifyStale NotificationReason = "Stale"
)

// NotificationFormat is the form of the messages of a Notification.
type NotificationFormat string

const (
	// FormatCloudEvents sends a CloudEvent 1.0 as JSON, in structured mode. This is the default.
	FormatCloudEvents NotificationFormat = "CloudEvents"
	// FormatSlack sends a message for an incoming webhook of Slack.
	FormatSlack NotificationFormat = "Slack"
	// FormatTeams sends an Adaptive Card, as a workflow of Microsoft Teams expects.
	FormatTeams NotificationFormat = "Teams"
)

// NotificationSpec defines the messages and their receiver.
type NotificationSpec struct {
	// Transitions to report: AwaitingApproval, Failed, Drifted and Stale. All of them by default.
	// +optional
	// +listType=set
	Reasons []NotificationReason `json:"reasons,omitempty"`
	// Only stacks with these labels, and their plans. Without it, all stacks and plans of the namespace.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// The receiver.
	Webhook Webhook `json:"webhook"`
	// Text at the beginning of each message, up to 500 characters.
	// +optional
	Text string `json:"text,omitempty"`
	// Send no messages. The server does not report the transitions of this time later.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// Webhook is a receiver of messages. The server sends each as an HTTPS POST request. It follows no redirects.
type Webhook struct {
	// Form of the messages: CloudEvents (the default), Slack or Teams.
	// +optional
	Format NotificationFormat `json:"format,omitempty"`
	// Address of the receiver: https://HOST[:PORT]/PATH. Either this or urlFrom is required.
	// +optional
	URL string `json:"url,omitempty"`
	// Secret with the address, because the addresses of Slack and Teams are secret.
	// +optional
	URLFrom *SecretKey `json:"urlFrom,omitempty"`
	// Headers of the requests with values from Secrets, such as Authorization; up to 10.
	// +optional
	// +listType=map
	// +listMapKey=name
	HeadersFrom []WebhookHeader `json:"headersFrom,omitempty"`
	// Secret with a key. The server signs each message with it, as Standard Webhooks specifies: HMAC-SHA256 in the
	// header webhook-signature.
	// +optional
	SigningKeyFrom *SecretKey `json:"signingKeyFrom,omitempty"`
	// PEM certificates of the authorities that the server trusts for the receiver, up to 64 KiB. Defaults to the
	// authorities that the server's machine trusts.
	// +optional
	CABundle string `json:"caBundle,omitempty"`
}

// SecretKeys returns the keys of Secrets that a webhook names.
func (w Webhook) SecretKeys() (keys []SecretKey) {
	for _, k := range []*SecretKey{w.URLFrom, w.SigningKeyFrom} {
		if k != nil {
			keys = append(keys, *k)
		}
	}
	for _, h := range w.HeadersFrom {
		keys = append(keys, h.SecretKey)
	}
	return keys
}

// SecretKey names a key of a Secret in the same namespace.
type SecretKey struct {
	// Name of the Secret.
	Name string `json:"name"`
	// Key in the Secret's data.
	Key string `json:"key"`
}

// WebhookHeader is a header of a request. Its value is in a Secret.
type WebhookHeader struct {
	// Name of the header.
	Name string `json:"name"`
	// Secret with the value.
	SecretKey SecretKey `json:"secretKey"`
}

// NotificationStatus has the last message of a Notification.
type NotificationStatus struct {
	// Generation of the spec that this status belongs to.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Ready, Reconciling and Stalled.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// User who last wrote the spec. The server reads Secrets, plans and stacks with the rights of this user. Set by the
	// server.
	// +optional
	Author *Identity `json:"author,omitempty"`
	// Time of the last change of the spec. Earlier transitions cause no messages. Set by the server.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
	// Number of messages that the receiver accepted.
	// +optional
	Delivered int64 `json:"delivered,omitempty"`
	// Number of messages that the receiver did not accept within the time limit.
	// +optional
	Failed int64 `json:"failed,omitempty"`
	// The last message that the server tried to send.
	// +optional
	Last *NotificationMessage `json:"last,omitempty"`
}

// NotificationMessage is a message that the server tried to send.
type NotificationMessage struct {
	// ID of the message: the attribute id of the CloudEvent.
	ID string `json:"id"`
	// Transition that the message reports; empty for a summary of omitted messages.
	// +optional
	Reason NotificationReason `json:"reason,omitempty"`
	// Kind of the object: Plan or Stack.
	// +optional
	Kind string `json:"kind,omitempty"`
	// Name of the object.
	// +optional
	Name string `json:"name,omitempty"`
	// UID of the object.
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// Number of attempts so far.
	Attempts int32 `json:"attempts"`
	// HTTP status of the last response; 0 if there was none.
	// +optional
	Code int32 `json:"code,omitempty"`
	// Time at which the receiver accepted the message.
	// +optional
	DeliveredAt *metav1.Time `json:"deliveredAt,omitempty"`
}

// NotificationList is a list of Notifications.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type NotificationList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Notification `json:"items"`
}
