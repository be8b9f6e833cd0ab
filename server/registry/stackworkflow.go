package registry

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/hykube/hykube/api/v1alpha1"
)

const (
	// maxWorkflowName is the maximum length of the type and the task queue of a workflow in bytes.
	maxWorkflowName = 200
	// maxWorkflowInput is the maximum size of the input of a workflow in bytes. The stack and each run have it.
	maxWorkflowInput = 64 << 10
	// temporalReserved begins the names of Temporal's own task queues.
	temporalReserved = "/_sys/"
)

// validateWorkflow validates the workflow of a stack, and refuses fields that have no meaning beside it.
func validateWorkflow(s *v1alpha1.Stack, spec *field.Path) (errs field.ErrorList) {
	w := s.Spec.Workflow
	if w == nil {
		return nil
	}
	path := spec.Child("workflow")
	errs = append(errs, validateWorkflowName(w.Type, path.Child("type"))...)
	errs = append(errs, validateWorkflowName(w.TaskQueue, path.Child("taskQueue"))...)
	errs = append(errs, validateWorkflowInput(w.Input, path.Child("input"))...)
	if s.Spec.Approval == v1alpha1.ApprovalAutomatic {
		errs = append(errs, field.Forbidden(spec.Child("approval"),
			"not with spec.workflow: the workflow says how its plans are approved, with the rights of the author and of its worker. Leave the field out"))
	}
	errs = append(errs, validateOnErrorOfWorkflow(s, spec)...)
	if d := s.Spec.Drift; d != nil && (d.Action == v1alpha1.DriftPlan || d.Action == v1alpha1.DriftCorrect) {
		errs = append(errs, field.Forbidden(spec.Child("drift", "action"),
			"only Report with spec.workflow: the stack makes no plan of its own beside the workflow"))
	}
	return errs
}

// validateOnErrorOfWorkflow refuses further plans after a failure. It replaces the rules of spec.retry, which would ask
// for the number of these plans.
func validateOnErrorOfWorkflow(s *v1alpha1.Stack, spec *field.Path) field.ErrorList {
	const why = "with spec.workflow: the workflow repeats its own steps"
	switch retry := s.Spec.Retry; {
	case s.Spec.OnError == v1alpha1.OnErrorRetry && retry != nil:
		return field.ErrorList{field.Forbidden(spec.Child("onError"),
			"not Retry "+why+". Use Halt or Continue, and remove spec.retry")}
	case s.Spec.OnError == v1alpha1.OnErrorRetry:
		return field.ErrorList{field.Forbidden(spec.Child("onError"), "not Retry "+why+". Use Halt or Continue")}
	case retry != nil:
		return field.ErrorList{field.Forbidden(spec.Child("retry"), "not "+why+". Remove it")}
	}
	return nil
}

func validateWorkflowName(name string, path *field.Path) field.ErrorList {
	switch {
	case name == "":
		return field.ErrorList{field.Required(path, "the name that the worker uses")}
	case len(name) > maxWorkflowName:
		return field.ErrorList{field.TooLong(path, "", maxWorkflowName)}
	case !utf8.ValidString(name), strings.ContainsFunc(name, unicode.IsControl), strings.TrimSpace(name) != name:
		return field.ErrorList{field.Invalid(path, shorten(name),
			"must have no control characters, and no space at its ends")}
	case strings.HasPrefix(name, temporalReserved):
		return field.ErrorList{field.Invalid(path, shorten(name),
			fmt.Sprintf("must not begin with %s, which is for Temporal itself", temporalReserved))}
	}
	return nil
}

func validateWorkflowInput(input *runtime.RawExtension, path *field.Path) field.ErrorList {
	if input == nil || len(input.Raw) == 0 {
		return nil
	}
	if len(input.Raw) > maxWorkflowInput {
		return field.ErrorList{field.TooLong(path, "", maxWorkflowInput)}
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(input.Raw, &object); err != nil || object == nil {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, "must be a JSON object")}
	}
	return nil
}
