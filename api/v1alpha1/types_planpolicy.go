package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PlanPolicy has rules about the plans of its namespace: what is refused, how many users must approve, and which plans may be applied
// without an approval. The server evaluates the rules when a plan is made, approved and begun.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type PlanPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// The rules.
	Spec PlanPolicySpec `json:"spec"`
}

// ClusterPlanPolicy has rules about the plans of all namespaces, or of those that it selects.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ClusterPlanPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// The namespaces and the rules.
	Spec ClusterPlanPolicySpec `json:"spec"`
}

// ClusterPlanPolicySpec is the spec of a PlanPolicy with a choice of namespaces.
type ClusterPlanPolicySpec struct {
	// Labels of the namespaces whose plans the policy is about. Defaults to all namespaces.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
	PlanPolicySpec    `json:",inline"`
}

// PlanPolicySpec is a list of rules.
type PlanPolicySpec struct {
	// The rules, at least one and at most 50. Every rule is evaluated, and their order means nothing.
	// +listType=map
	// +listMapKey=name
	Rules []PlanPolicyRule `json:"rules"`
}

// PlanPolicyEffect is what a rule does to a plan for which it holds.
type PlanPolicyEffect string

const (
	// PolicyDeny refuses the plan: nobody can approve it while the rule holds.
	PolicyDeny PlanPolicyEffect = "Deny"
	// PolicyWarn shows the message with the plan.
	PolicyWarn PlanPolicyEffect = "Warn"
	// PolicyRequireApprovals asks for the approvals in the field approvals.
	PolicyRequireApprovals PlanPolicyEffect = "RequireApprovals"
	// PolicyAllowAutomatic lets a plan with spec.approval Automatic be applied without an approval, also if its creator has no right to
	// approve. If a policy of a namespace has such rules, the server applies no plan automatically unless one of them holds for it.
	PolicyAllowAutomatic PlanPolicyEffect = "AllowAutomatic"
)

// PlanPolicyRule is one rule.
type PlanPolicyRule struct {
	// Name of the rule within the policy.
	Name string `json:"name"`
	// Condition in CEL (https://cel.dev). The rule holds if it is true. If it cannot be evaluated, the plan is refused. The variables
	// are: plan (as "terraform show -json" prints it, without configuration), spec (of the Plan), requester and approvers (username, groups),
	// counts, providers, namespaceObject (metadata.name and metadata.labels), earlier (records of earlier plans, the latest first) and now.
	When string `json:"when"`
	// Deny, Warn, RequireApprovals or AllowAutomatic.
	Effect PlanPolicyEffect `json:"effect"`
	// The approvals that the effect RequireApprovals asks for.
	// +optional
	Approvals *RequiredApprovals `json:"approvals,omitempty"`
	// Why, and what to do. Defaults to the condition.
	// +optional
	Message string `json:"message,omitempty"`
	// CEL expression that gives the message. It takes precedence over message, which is used if the expression fails.
	// +optional
	MessageExpression string `json:"messageExpression,omitempty"`
}

// RequiredApprovals says who must approve a plan before it is applied.
type RequiredApprovals struct {
	// Number of users. Defaults to 1.
	// +optional
	Count int32 `json:"count,omitempty"`
	// Each of the users is in at least one of these groups. Defaults to any user with the verb "approve".
	// +optional
	// +listType=set
	Groups []string `json:"groups,omitempty"`
	// Do not count the user who created the plan.
	// +optional
	ExcludeRequester bool `json:"excludeRequester,omitempty"`
}

// PlanPolicyResult is a rule that holds for a plan.
type PlanPolicyResult struct {
	// The policy and the rule, such as "PlanPolicy/production/no-deletes".
	Rule string `json:"rule"`
	// What the rule does.
	Effect PlanPolicyEffect `json:"effect"`
	// Why, in the words of the policy.
	// +optional
	Message string `json:"message,omitempty"`
	// The approvals that the rule asks for.
	// +optional
	Approvals *RequiredApprovals `json:"approvals,omitempty"`
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
