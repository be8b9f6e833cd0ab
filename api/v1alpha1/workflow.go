package v1alpha1

import "strings"

// Annotations of a Plan that a workflow of a user made. They name the workflow run, as the Web UI shows it. Whoever may
// write plans may set them, so they prove nothing.
const (
	// AnnotationWorkflowNamespace is the Temporal namespace of the run.
	AnnotationWorkflowNamespace = "hykube.io/workflow-namespace"
	// AnnotationWorkflowID is the workflow ID.
	AnnotationWorkflowID = "hykube.io/workflow-id"
	// AnnotationWorkflowRunID is the run ID.
	AnnotationWorkflowRunID = "hykube.io/workflow-run-id"
	// AnnotationWorkflowStep is the ID of the activity that made the plan. With the run ID, it identifies the step.
	AnnotationWorkflowStep = "hykube.io/workflow-step"
)

// temporalPrefix begins the names of the Temporal namespaces for workflows of users. A Kubernetes namespace has no dot
// in its name, so no two of them share a Temporal namespace.
const temporalPrefix = "hykube."

// TemporalNamespace returns the Temporal namespace for the workflows of a Kubernetes namespace: "prod" -> "hykube.prod".
func TemporalNamespace(namespace string) string { return temporalPrefix + namespace }

// NamespaceOfTemporal is the inverse of TemporalNamespace. ok is false for any other name. It does not check that a
// Kubernetes namespace may have the name.
func NamespaceOfTemporal(name string) (namespace string, ok bool) {
	namespace, ok = strings.CutPrefix(name, temporalPrefix)
	if !ok || namespace == "" {
		return "", false
	}
	return namespace, true
}
