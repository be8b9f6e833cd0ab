package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// ResourceSetRollout limits how a plan updates and replaces the instances of a set. It does not limit the creates and
// destroys of instances. A percentage is one of all instances of the set, rounded down.
type ResourceSetRollout struct {
	// Number or percentage of instances that a plan updates or replaces at once, at least 1. Unlimited if it is empty.
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// Numbers or percentages of instances, ascending, such as [1, "10%"]. After each number of changes, the plan waits
	// until these have ended, and then for the pause. The rest of the instances is the last wave.
	// +optional
	// +listType=atomic
	Waves []intstr.IntOrString `json:"waves,omitempty"`
	// Pause after each wave but the last one, such as "5m", at most 24h. None if it is empty.
	// +optional
	Pause *metav1.Duration `json:"pause,omitempty"`
	// Number or percentage of instances that may fail. After one more, the plan changes no further instance of the set.
	// The default is 0.
	// +optional
	MaxFailures *intstr.IntOrString `json:"maxFailures,omitempty"`
}

// PlanRollout is the rollout of one ResourceSet in a plan.
type PlanRollout struct {
	// Name of the ResourceSet.
	ResourceSet string `json:"resourceSet"`
	// UID of the ResourceSet.
	UID types.UID `json:"uid"`
	// Number of instances that the plan updates or replaces in each wave. Their sum is the number of all.
	// +listType=atomic
	Waves []int32 `json:"waves"`
	// Number of instances that the plan changes at once; unlimited if it is empty.
	// +optional
	MaxUnavailable int32 `json:"maxUnavailable,omitempty"`
	// Pause between two waves.
	// +optional
	Pause *metav1.Duration `json:"pause,omitempty"`
	// Number of instances that may fail. After one more, the plan changes no further instance of the set.
	// +optional
	MaxFailures int32 `json:"maxFailures,omitempty"`
}
