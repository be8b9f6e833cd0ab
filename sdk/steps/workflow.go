package steps

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
)

// This file has the functions that workflows call: the steps, with their options and results. They only start
// activities.

// Names of the registered activities. They are part of the histories of workflows, so they never change.
const (
	recordName        = "hykube.Record"
	planName          = "hykube.Plan"
	awaitApprovalName = "hykube.AwaitApproval"
	applyName         = "hykube.Apply"
	awaitReadyName    = "hykube.AwaitReady"
	driftName         = "hykube.Drift"
	outputsName       = "hykube.Outputs"
	discardName       = "hykube.Discard"
)

const (
	// heartbeatTimeout is the default time after which Temporal considers a silent worker lost and runs the step again.
	heartbeatTimeout = time.Minute
	// attemptTimeout is the maximum time of one attempt. It is longer than any wait, because heartbeats show a lost
	// worker.
	attemptTimeout = 10 * 365 * 24 * time.Hour
)

// PlansMemo begins the keys of the memo that name the plans of a workflow as NAMESPACE/NAME: hykubePlan1, hykubePlan2
// and so on, up to 100. The Web UI shows the memo.
const PlansMemo = "hykubePlan"

const maxPlans = 100

// StepOptions are the options that all steps have. The zero value has usable defaults.
type StepOptions struct {
	// Timeout limits the step with all its attempts. 0 means no limit.
	Timeout time.Duration `json:"-"`
	// HeartbeatTimeout is the time after which Temporal considers a silent worker lost; 0 means one minute.
	HeartbeatTimeout time.Duration `json:"-"`
	// Summary is a line that the Web UI shows with the step; empty means a line about the step.
	Summary string `json:"-"`
}

// PlanRef names a plan, and the changes in it.
type PlanRef struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
	// Digest identifies the changes. Apply with Approve approves these and no others.
	Digest string `json:"digest,omitempty"`
}

func (r PlanRef) String() string { return r.Namespace + "/" + r.Name }

// ObjectRef names an object.
type ObjectRef struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	// Namespace is the namespace; empty means that of the step.
	Namespace string `json:"namespace,omitempty"`
}

func (r ObjectRef) String() string { return r.Kind + "/" + r.Name }

// RecordOptions are the options of Record.
type RecordOptions struct {
	StepOptions
	// Namespace is the namespace of objects without one; empty means that of the worker.
	Namespace string `json:"namespace,omitempty"`
	// Objects to write, in this order, by server-side apply with the field manager "hykube-workflow". They become part
	// of the history of the workflow, so Record refuses Secrets.
	Objects []unstructured.Unstructured `json:"objects,omitempty"`
	// Delete names objects to delete, after the writes. The infrastructure of a deleted object stays until a plan is
	// applied. An object that does not exist is no error.
	Delete []ObjectRef `json:"delete,omitempty"`
	// Force takes ownership of fields from other field managers. Without it, a field of another manager causes an error
	// of the type Conflict.
	Force bool `json:"force,omitempty"`
}

// RecordResult is the result of Record.
type RecordResult struct {
	// Objects are the written objects, in the order of the options.
	Objects []RecordedObject `json:"objects,omitempty"`
	// Remaining are the deleted objects that stay until a plan has destroyed their infrastructure. The others no longer
	// exist.
	Remaining []ObjectRef `json:"remaining,omitempty"`
}

// RecordedObject is an object that Record wrote.
type RecordedObject struct {
	ObjectRef
	UID        types.UID `json:"uid"`
	Generation int64     `json:"generation,omitempty"`
}

// Record writes and deletes objects. It changes no infrastructure: that needs a plan. It fails with Forbidden, Invalid,
// Conflict or NotFound (of a kind).
func Record(ctx workflow.Context, o RecordOptions) (out RecordResult, err error) {
	if err := withoutSecrets(o.Objects); err != nil {
		return out, err
	}
	err = run(ctx, recordName, o.StepOptions,
		fmt.Sprintf("record %d objects, delete %d", len(o.Objects), len(o.Delete)), o, &out)
	return out, err
}

func withoutSecrets(objects []unstructured.Unstructured) error {
	for _, o := range objects {
		if o.GetKind() == "Secret" {
			return failure(Invalid, "record Secret %q: the history of a workflow would show its values; write it with kubectl", o.GetName())
		}
	}
	return nil
}

// PlanOptions are the options of Plan.
type PlanOptions struct {
	StepOptions
	// Namespace is the namespace of the plan; empty means that of the worker.
	Namespace string `json:"namespace,omitempty"`
	// Spec selects the resources and the way to plan them. A plan with the approval Automatic needs the verb "approve".
	Spec v1alpha1.PlanSpec `json:"spec"`
}

// PlanResult is the result of Plan.
type PlanResult struct {
	PlanRef
	// Summary counts the changes.
	Summary v1alpha1.PlanSummary `json:"summary"`
	// NoChanges is true if there is nothing to apply. The plan has ended.
	NoChanges bool `json:"noChanges,omitempty"`
	// Automatic is true if the server applies the plan without an approval.
	Automatic bool `json:"automatic,omitempty"`
}

// Plan makes a plan and waits until planning is done. The name of the plan derives from the run and the step, so the
// step makes only one plan, even if it runs several times. The plan carries annotations with the run, and the memo of
// the workflow names the plan: see PlansMemo. Plan fails with PlanFailed, PolicyDenied, Blocked, Forbidden, Invalid or
// Conflict. A plan that fails with PolicyDenied or Blocked waits for a decision; see PlanOf.
func Plan(ctx workflow.Context, o PlanOptions) (out PlanResult, err error) {
	err = run(ctx, planName, o.StepOptions, "plan", o, &out)
	ref := out.PlanRef
	if err != nil {
		var ok bool
		if ref, ok = PlanOf(err); !ok {
			return out, err
		}
		out.PlanRef = ref
	}
	if merr := addToMemo(ctx, ref); merr != nil && err == nil {
		err = merr
	}
	return out, err
}

// addToMemo adds a plan to the memo of the workflow.
func addToMemo(ctx workflow.Context, ref PlanRef) error {
	known := 0
	for key := range workflow.GetInfo(ctx).Memo.GetFields() { // counts, so the order does not matter
		if strings.HasPrefix(key, PlansMemo) {
			known++
		}
	}
	if known >= maxPlans {
		return nil
	}
	return workflow.UpsertMemo(ctx, map[string]any{PlansMemo + strconv.Itoa(known+1): ref.String()})
}

// AwaitApprovalOptions are the options of AwaitApproval.
type AwaitApprovalOptions struct {
	StepOptions
	Plan PlanRef `json:"plan"`
}

// Approval is the result of AwaitApproval.
type Approval struct {
	// By is the user who approved the plan. Empty for a plan without changes, or with an automatic approval.
	By string `json:"by,omitempty"`
	// Message is the reason that the user gave.
	Message string `json:"message,omitempty"`
}

// AwaitApproval waits until a plan is approved. A plan without changes needs no approval. It fails with Discarded,
// Superseded, Stale, Cancelled, PolicyDenied, NotFound or Forbidden.
func AwaitApproval(ctx workflow.Context, o AwaitApprovalOptions) (out Approval, err error) {
	err = run(ctx, awaitApprovalName, o.StepOptions, "wait for the approval of plan "+o.Plan.String(), o, &out)
	return out, err
}

// ApplyOptions are the options of Apply.
type ApplyOptions struct {
	StepOptions
	Plan PlanRef `json:"plan"`
	// Approve approves the changes with the digest of Plan first. The user who started the workflow and the user of the
	// worker both need the verb "approve" on plans, and the verb of each change. Without it, Apply waits for the
	// approval of another user.
	Approve bool `json:"approve,omitempty"`
	// Partial leaves out blocked and stale changes; only with Approve.
	Partial bool `json:"partial,omitempty"`
	// Message is the reason of the approval; only with Approve.
	Message string `json:"message,omitempty"`
}

// ApplyResult is the result of Apply.
type ApplyResult struct {
	// Progress counts the changes.
	Progress v1alpha1.PlanProgress `json:"progress"`
	// InPart is true if a partial approval left changes out.
	InPart bool `json:"inPart,omitempty"`
}

// Apply waits until the server has applied a plan. With Approve, it approves the plan first. It fails with ApplyFailed,
// Cancelled, Stale, Discarded, Superseded, PolicyDenied, Blocked, NotFound or Forbidden.
func Apply(ctx workflow.Context, o ApplyOptions) (out ApplyResult, err error) {
	err = run(ctx, applyName, o.StepOptions, "apply plan "+o.Plan.String(), o, &out)
	return out, err
}

// AwaitReadyOptions are the options of AwaitReady.
type AwaitReadyOptions struct {
	StepOptions
	// Namespace is the namespace of an object without one; empty means that of the worker.
	Namespace string `json:"namespace,omitempty"`
	// Object has the condition Ready.
	Object ObjectRef `json:"object"`
}

// AwaitReady waits until the condition Ready of an object is True for its current generation. It fails with Stalled,
// NotFound or Forbidden.
func AwaitReady(ctx workflow.Context, o AwaitReadyOptions) error {
	return run(ctx, awaitReadyName, o.StepOptions, "wait until "+o.Object.String()+" is ready", o, nil)
}

// DriftOptions are the options of Drift.
type DriftOptions struct {
	StepOptions
	// Namespace is the namespace; empty means that of the worker.
	Namespace string `json:"namespace,omitempty"`
	// Selector and Targets select resources, as in the spec of a plan. Without both, the step reads all.
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	Targets  []string              `json:"targets,omitempty"`
	// Budget limits the reads.
	Budget *v1alpha1.ReadBudget `json:"budget,omitempty"`
}

// DriftResult is the result of Drift.
type DriftResult struct {
	// Drifted counts the resources that were changed outside of Hykube.
	Drifted int `json:"drifted"`
	// Addresses are the Terraform addresses of up to 1,000 of them.
	Addresses []string `json:"addresses,omitempty"`
	// ReadTo is the address of the last resource that was read, if the budget did not suffice for all.
	ReadTo string `json:"readTo,omitempty"`
}

// Drift reads infrastructure and returns the resources that were changed outside of Hykube. It makes a refresh-only
// plan, reads its changes and deletes it, so it records nothing. It needs create, get, watch and delete on plans. It
// fails with the same types of errors as Plan.
func Drift(ctx workflow.Context, o DriftOptions) (out DriftResult, err error) {
	err = run(ctx, driftName, o.StepOptions, "look for drift", o, &out)
	return out, err
}

// OutputsOptions are the options of Outputs.
type OutputsOptions struct {
	StepOptions
	// Namespace is the namespace; empty means that of the worker.
	Namespace string `json:"namespace,omitempty"`
	// Stack is the name of a stack. The step reads its status.outputs.
	Stack string `json:"stack,omitempty"`
	// Expressions to evaluate, by name, such as "sim_dns_record.www.fqdn".
	Expressions map[string]string `json:"expressions,omitempty"`
}

// OutputsResult is the result of Outputs.
type OutputsResult struct {
	// Values by name, as JSON. Sensitive values are omitted, because the history of a workflow shows results.
	Values map[string]string `json:"values,omitempty"`
	// Sensitive are the names of the omitted values.
	Sensitive []string `json:"sensitive,omitempty"`
	// Unknown are the names of expressions whose values are known only after an apply.
	Unknown []string `json:"unknown,omitempty"`
}

// Outputs returns outputs of a stack and values of expressions, without sensitive ones. It fails with Invalid, NotFound
// or Forbidden.
func Outputs(ctx workflow.Context, o OutputsOptions) (out OutputsResult, err error) {
	err = run(ctx, outputsName, o.StepOptions, "read outputs", o, &out)
	return out, err
}

// DiscardOptions are the options of Discard.
type DiscardOptions struct {
	StepOptions
	Plan PlanRef `json:"plan"`
	// Message is the reason.
	Message string `json:"message,omitempty"`
}

// Discard discards a plan, so that no user can approve it. A plan that has ended, or that does not exist, is no error.
// It needs the verb "approve" on plans. It fails with Approved or Forbidden.
func Discard(ctx workflow.Context, o DiscardOptions) error {
	return run(ctx, discardName, o.StepOptions, "discard plan "+o.Plan.String(), o, nil)
}

// run runs the activity of a step. The step keeps the task queue and the priority of ctx.
func run(ctx workflow.Context, name string, o StepOptions, summary string, in, out any) error {
	options := workflow.GetActivityOptions(ctx)
	options.ScheduleToCloseTimeout = o.Timeout
	options.StartToCloseTimeout = attemptTimeout
	options.HeartbeatTimeout = heartbeatTimeout
	if o.HeartbeatTimeout > 0 {
		options.HeartbeatTimeout = o.HeartbeatTimeout
	}
	options.Summary = summary
	if o.Summary != "" {
		options.Summary = o.Summary
	}
	options.RetryPolicy = &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2,
		MaximumInterval: time.Minute}
	return workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, options), name, in).Get(ctx, out)
}
