package resource

import (
	"encoding/json"

	"github.com/hykube/hykube/api/v1alpha1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Facts are the facts in the status of an object on which plans and counts depend.
type Facts struct {
	// Good is the result of Status.Good.
	Good bool
	// Stalled is true if nothing happens until a user acts. Failed is true if the object is stalled for another reason
	// than drift. Drift has the reasons Drifted and Gone.
	Stalled, Failed bool
	// Cancelled is true if the object is stalled because a user cancelled a plan before its change.
	Cancelled bool
	// Drifted is the generation for which drift was recorded; 0 if there is none.
	Drifted int64
}

// FactsOf returns the facts in the status of an object. It is faster than StatusOf.
func FactsOf(obj *unstructured.Unstructured) (j Facts) {
	status, _ := obj.Object["status"].(map[string]any)
	applied, found, _ := unstructured.NestedInt64(status, "appliedGeneration")
	if !found {
		applied, _, _ = unstructured.NestedInt64(status, "observedGeneration")
	}
	list, _ := status["conditions"].([]any)
	for _, c := range list {
		c, _ := c.(map[string]any)
		if c["status"] != string(metav1.ConditionTrue) {
			continue
		}
		kind, _ := c["type"].(string)
		reason, _ := c["reason"].(string)
		observed, _, _ := unstructured.NestedInt64(c, "observedGeneration")
		j.add(kind, reason, observed, applied == obj.GetGeneration())
	}
	return j
}

// add adds what a true condition says. applied is true if the current generation is applied.
func (j *Facts) add(kind, reason string, observed int64, applied bool) {
	switch kind {
	case v1alpha1.ConditionReady:
		j.Good = applied
	case v1alpha1.ConditionDrifted:
		j.Drifted = observed
	case v1alpha1.ConditionStalled:
		j.Stalled = true
		j.Failed = reason != v1alpha1.ReasonDrifted && reason != v1alpha1.ReasonGone
		j.Cancelled = reason == v1alpha1.ReasonCancelled
	}
}

// StoredFacts are the facts in a stored status, which does not have the generation of its object.
type StoredFacts struct {
	// Facts are those of an object with the applied generation.
	Facts
	// Applied is the applied generation; 0 if there is none. Applying is true while a plan applies a change.
	Applied  int64
	Applying bool
	// Ready and Reason are those of the condition Ready; empty without one. Observed is the observed generation.
	Ready    metav1.ConditionStatus
	Reason   string
	Observed int64
}

// FactsIn returns the facts in the JSON of a status. It does not decode the attributes, which are most of the status.
func FactsIn(status []byte) (j StoredFacts, err error) {
	var s struct {
		Applied    *int64 `json:"appliedGeneration"`
		Observed   int64  `json:"observedGeneration"`
		Conditions []struct {
			Type, Reason       string
			Status             metav1.ConditionStatus
			ObservedGeneration int64
		} `json:"conditions"`
	}
	if err := json.Unmarshal(status, &s); err != nil {
		return StoredFacts{}, err
	}
	applied := s.Observed
	j.Observed = s.Observed
	if s.Applied != nil {
		j.Applied, applied = *s.Applied, *s.Applied
	}
	for _, c := range s.Conditions {
		if c.Type == v1alpha1.ConditionReady {
			j.Ready, j.Reason = c.Status, c.Reason
		}
		if c.Status != metav1.ConditionTrue {
			continue
		}
		j.add(c.Type, c.Reason, c.ObservedGeneration, applied == j.Applied)
		j.Applying = j.Applying || c.Type == v1alpha1.ConditionReconciling
	}
	return j, nil
}
