package v1alpha1

import "strings"

// Annotations of a Plan that a workflow of a user made. They name the workflow run, as the Web UI shows it. Every user
// who may write plans may set them, so they are no proof.
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

// WorkflowAnnotations are the annotations that name the workflow of a Plan. They cannot be changed after its creation.
var WorkflowAnnotations = []string{AnnotationWorkflowNamespace, AnnotationWorkflowID, AnnotationWorkflowRunID,
	AnnotationWorkflowStep}

// Names of the headers with which a worker acts for the user who started a workflow. The server puts a signed text into
// the header of an activity, and the worker sends it with its requests to the API.
const (
	// HeaderOnBehalfOf is the HTTP header of the worker's requests.
	HeaderOnBehalfOf = "X-Hykube-On-Behalf-Of"
	// ActivityHeaderOnBehalfOf is the key in the header of an activity.
	ActivityHeaderOnBehalfOf = "hykube-on-behalf-of"
)

// temporalPrefix begins the names of the Temporal namespaces for workflows of users. A Kubernetes namespace has no dot
// in its name, so no two of them share a Temporal namespace.
const temporalPrefix = "hykube."

// TemporalNamespace returns the Temporal namespace for the workflows of a Kubernetes namespace: "prod" ->
// "hykube.prod".
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

// stackPrefix begins the IDs of the workflows that stacks start.
const stackPrefix = "stack."

// WorkflowIDOfStack returns the workflow ID of the workflow of a stack: "web" -> "stack.web".
func WorkflowIDOfStack(stack string) string { return stackPrefix + stack }

// StackOfWorkflowID is the inverse of WorkflowIDOfStack. ok is false for any other ID.
func StackOfWorkflowID(id string) (stack string, ok bool) {
	if !strings.HasPrefix(id, stackPrefix) {
		return "", false
	}
	return id[len(stackPrefix):], true
}

// StackName returns the name of the stack that made the plan, or whose workflow did; "" if there is none. The
// annotations of the plan name the workflow, so the name is no proof.
func (p *Plan) StackName() string {
	if p.Status.Stack != nil {
		return p.Status.Stack.Stack
	}
	if p.Annotations[AnnotationWorkflowNamespace] != TemporalNamespace(p.Namespace) {
		return ""
	}
	stack, _ := StackOfWorkflowID(p.Annotations[AnnotationWorkflowID])
	return stack
}
