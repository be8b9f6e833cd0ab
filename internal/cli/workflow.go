package cli

import (
	"fmt"
	"net/url"

	"github.com/hykube/hykube/api/v1alpha1"
)

// workflowRun is the run of a user's workflow that made a plan, as the plan's annotations name it.
type workflowRun struct{ namespace, id, run string }

// workflowOf returns the run that made a plan; nil if no workflow did.
func workflowOf(p *v1alpha1.Plan) *workflowRun {
	w := workflowRun{p.Annotations[v1alpha1.AnnotationWorkflowNamespace], p.Annotations[v1alpha1.AnnotationWorkflowID], p.Annotations[v1alpha1.AnnotationWorkflowRunID]}
	if w.namespace == "" || w.id == "" {
		return nil
	}
	return &w
}

func (w *workflowRun) String() string {
	return fmt.Sprintf("%s in the Temporal namespace %s, run %s", flat(w.id), flat(w.namespace), flat(w.run))
}

// page returns the page of the run in the Web UI.
func (w *workflowRun) page() string {
	page := uiPath + "namespaces/" + url.PathEscape(w.namespace) + "/workflows/" + url.PathEscape(w.id)
	if w.run != "" {
		page += "/" + url.PathEscape(w.run) + "/history"
	}
	return page
}
