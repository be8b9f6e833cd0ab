// Package workflow is the verbs workflows and ui, and names the run of a workflow that made a plan.
package workflow

import (
	"fmt"
	"net/url"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/printer"
)

// Run is the run of a user's workflow that made a plan, as the plan's annotations name it.
type Run struct{ Namespace, ID, Run string }

// RunOf returns the run that made a plan; nil if no workflow did.
func RunOf(p *v1alpha1.Plan) *Run {
	w := Run{p.Annotations[v1alpha1.AnnotationWorkflowNamespace], p.Annotations[v1alpha1.AnnotationWorkflowID],
		p.Annotations[v1alpha1.AnnotationWorkflowRunID]}
	if w.Namespace == "" || w.ID == "" {
		return nil
	}
	return &w
}

// String returns the ID of the run, its Temporal namespace and its run ID.
func (w *Run) String() string {
	return fmt.Sprintf("%s in the Temporal namespace %s, run %s", printer.Flat(w.ID), printer.Flat(w.Namespace),
		printer.Flat(w.Run))
}

// page returns the page of the run in the Web UI.
func (w *Run) page() string {
	page := uiPath + "namespaces/" + url.PathEscape(w.Namespace) + "/workflows/" + url.PathEscape(w.ID)
	if w.Run != "" {
		page += "/" + url.PathEscape(w.Run) + "/history"
	}
	return page
}
