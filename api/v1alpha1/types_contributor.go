package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MaxContributors is the maximum number of users in a list of contributors. A further entry stands for all others.
const MaxContributors = 16

// Contributor is a user who wrote something that changes of a plan follow from: an object, a ResourceSet, or a
// ConfigMap, Secret or ProviderConfig that an object uses. Only the server writes contributors.
type Contributor struct {
	// User, as the server authenticated the last of the writes. The user name is empty if more is true.
	Identity `json:",inline"`
	// True for the last entry of a list that has more than 16 users. It stands for all users whom the list leaves out.
	// A plan with this entry never approves itself.
	// +optional
	More bool `json:"more,omitempty"`
	// What the user wrote, such as "spec", "labels" or "deletion". In a plan, also objects, such as "ConfigMap hosts:
	// list".
	// +optional
	// +listType=atomic
	Wrote []string `json:"wrote,omitempty"`
	// Time of the last of the writes.
	// +optional
	At metav1.MicroTime `json:"at,omitempty"`
}

// What a user wrote of an object, in Contributor.Wrote.
const (
	WroteSpec      = "spec"
	WroteLifecycle = "lifecycle"
	WroteLabels    = "labels"
	WroteDeletion  = "deletion"
	WroteUndelete  = "undelete"
	WroteTaint     = "taint"
	WroteResolve   = "resolve"
	WroteState     = "state"
)
