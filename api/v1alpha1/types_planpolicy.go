package v1alpha1

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PlanPolicy has rules for the plans of its namespace. The rules deny plans, require approvals by several users, or
// permit plans to be applied without an approval. The server evaluates the rules when a plan is made, at each approval,
// and before the apply.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type PlanPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// The rules.
	Spec PlanPolicySpec `json:"spec"`
	// Set by the server.
	// +optional
	Status PlanPolicyStatus `json:"status,omitempty"`
}

// ClusterPlanPolicy has rules for the plans of all namespaces, or of those that it selects.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ClusterPlanPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// The namespaces and the rules.
	Spec ClusterPlanPolicySpec `json:"spec"`
	// Set by the server.
	// +optional
	Status PlanPolicyStatus `json:"status,omitempty"`
}

// PlanPolicyStatus is what the server records about a policy.
type PlanPolicyStatus struct {
	// User who last wrote the spec. The rules with the effect AllowAutomatic work only while that user has the verb
	// "approve" on the plans.
	// +optional
	Author *Identity `json:"author,omitempty"`
}

// ClusterPlanPolicySpec is the spec of a PlanPolicy with a selector of namespaces.
type ClusterPlanPolicySpec struct {
	// Selects the namespaces of the plans by their labels. Defaults to all namespaces.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
	PlanPolicySpec    `json:",inline"`
}

// PlanPolicySpec is a list of rules.
type PlanPolicySpec struct {
	// The rules, at least one and at most 50. The server evaluates each rule, and their order has no effect.
	// +listType=map
	// +listMapKey=name
	Rules []PlanPolicyRule `json:"rules"`
}

// PlanPolicyEffect is the effect of a rule on a plan for which it holds.
type PlanPolicyEffect string

const (
	// PolicyDeny denies the plan: no user can approve it while the rule holds.
	PolicyDeny PlanPolicyEffect = "Deny"
	// PolicyWarn shows the message with the plan.
	PolicyWarn PlanPolicyEffect = "Warn"
	// PolicyRequireApprovals requires the approvals in the field approvals.
	PolicyRequireApprovals PlanPolicyEffect = "RequireApprovals"
	// PolicyAllowAutomatic permits a plan with spec.approval Automatic to be applied without an approval, even if its
	// creator may not approve plans. It permits nothing if the author of the policy may not approve plans. If a
	// namespace has such rules, the server applies a plan automatically only if one of them holds for it.
	PolicyAllowAutomatic PlanPolicyEffect = "AllowAutomatic"
)

// PlanPolicyRule is a rule of a policy.
type PlanPolicyRule struct {
	// Name of the rule within the policy.
	Name string `json:"name"`
	// Condition in CEL (https://cel.dev). The rule holds if the condition is true. If it cannot be evaluated, the plan
	// is denied. If it depends on a value that is not known before the apply, the rule is undecided, and evaluated
	// again before the change with that value. The variables are: plan (as "terraform show -json" prints it, without
	// configuration), spec (of the Plan), requester and approvers (username, groups), counts, providers,
	// namespaceObject (metadata.name and metadata.labels), earlier (records of earlier plans, latest first) and now.
	When string `json:"when"`
	// Deny, Warn, RequireApprovals or AllowAutomatic.
	Effect PlanPolicyEffect `json:"effect"`
	// The approvals that the effect RequireApprovals requires.
	// +optional
	Approvals *RequiredApprovals `json:"approvals,omitempty"`
	// The reason of the rule and the remedy. Defaults to the condition.
	// +optional
	Message string `json:"message,omitempty"`
	// CEL expression of the message. It takes precedence over message. If it fails, the server uses message.
	// +optional
	MessageExpression string `json:"messageExpression,omitempty"`
}

// RequiredApprovals are the approvals that a plan needs before it is applied.
type RequiredApprovals struct {
	// Number of users. Defaults to 1.
	// +optional
	Count int32 `json:"count,omitempty"`
	// Only members of one of these groups count. Defaults to any user with the verb "approve".
	// +optional
	// +listType=set
	Groups []string `json:"groups,omitempty"`
	// If true, an approval by the plan's creator does not count, and none by a user who wrote what the changes follow
	// from (status.contributors of the plan).
	// +optional
	ExcludeRequester bool `json:"excludeRequester,omitempty"`
}

// PlanPolicyResult is a rule that holds for a plan, or that is undecided.
type PlanPolicyResult struct {
	// The policy and the rule, such as "PlanPolicy/production/no-deletes".
	Rule string `json:"rule"`
	// The effect of the rule.
	Effect PlanPolicyEffect `json:"effect"`
	// The message of the rule.
	// +optional
	Message string `json:"message,omitempty"`
	// The approvals that the rule requires.
	// +optional
	Approvals *RequiredApprovals `json:"approvals,omitempty"`
	// Set if it is not known whether the rule holds, because it depends on values that are not known before the apply.
	// The server evaluates the rule again before each of these changes. Until then, the rule has no effect.
	// +optional
	Undecided *PlanPolicyUndecided `json:"undecided,omitempty"`
	// User who last wrote the policy; only for the effect AllowAutomatic.
	// +optional
	Author string `json:"author,omitempty"`
}

// PlanPolicyUndecided names the changes whose unknown values a rule depends on.
type PlanPolicyUndecided struct {
	// Terraform addresses of the changes, at most 5.
	// +optional
	// +listType=atomic
	Addresses []string `json:"addresses,omitempty"`
	// Number of further changes.
	// +optional
	More int32 `json:"more,omitempty"`
}

// List returns the addresses in one line.
func (u *PlanPolicyUndecided) List() string {
	text := strings.Join(u.Addresses, ", ")
	if u.More > 0 {
		text += fmt.Sprintf(" and %d more", u.More)
	}
	return text
}

// PlanPolicyList is a list of PlanPolicies.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type PlanPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PlanPolicy `json:"items"`
}

// ClusterPlanPolicyList is a list of ClusterPlanPolicies.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ClusterPlanPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterPlanPolicy `json:"items"`
}
