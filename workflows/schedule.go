package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// Names of the workflows that Temporal Schedules start, as the Web UI shows them.
const (
	DriftCheckName    = "drift-check"
	ScheduledPlanName = "scheduled-plan"
)

// Names of the activities of these workflows.
const (
	ActivityRequestCheck = "RequestCheck"
	ActivityCheckState   = "CheckState"
	ActivityRequestPlan  = "RequestPlan"
)

// Stack names the Stack object of a schedule.
type Stack struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
}

// ScheduleID returns the ID of the schedule that starts a workflow for the stack.
func (s Stack) ScheduleID(workflowName string) string {
	return SchedulePrefix + workflowName + "." + s.Namespace + "." + s.Name + "." + s.UID
}

// SchedulePrefix begins the IDs of all schedules of the server.
const SchedulePrefix = "hykube."

// StackRequest asks a stack for a plan or for a drift check. ID is unique.
type StackRequest struct {
	Stack
	ID string `json:"id"`
	// Due is the scheduled time; zero if a user started the workflow.
	Due time.Time `json:"due,omitzero"`
}

// CheckState is the state of a drift check.
type CheckState struct {
	// Ended is true if the check has ended, or if its stack no longer exists.
	Ended bool `json:"ended"`
	// Outcome is the outcome of an ended check, such as "Drifted". It is "Skipped" if an earlier check was running or
	// the stack takes no checks, and "Gone" if the stack was deleted.
	Outcome string `json:"outcome,omitempty"`
	// Text describes the state in one line.
	Text string `json:"text,omitempty"`
}

// Outcomes of a drift check beside those of the API.
const (
	CheckSkipped = "Skipped"
	CheckGone    = "Gone"
)

// Pauses between two reads of the state of a drift check. Each pause is twice as long as the one before.
const (
	minCheckPause = time.Second
	maxCheckPause = time.Minute
)

func scheduledOptions(ctx workflow.Context) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Minute,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 30 * time.Second,
			NonRetryableErrorTypes: []string{ErrorFinal},
		},
	})
}

// searchDue is the search attribute with the scheduled time of a workflow, which Temporal sets.
var searchDue = temporal.NewSearchAttributeKeyTime("TemporalScheduledStartTime")

func requestOf(ctx workflow.Context, s Stack) StackRequest {
	due, _ := workflow.GetTypedSearchAttributes(ctx).GetTime(searchDue)
	return StackRequest{Stack: s, ID: workflow.GetInfo(ctx).WorkflowExecution.RunID, Due: due}
}

// DriftCheck asks a stack for a drift check and waits for its end. The server runs the check from the Stack object, so
// a check continues without this workflow.
func DriftCheck(ctx workflow.Context, s Stack) (CheckState, error) {
	ctx = scheduledOptions(ctx)
	request := requestOf(ctx, s)
	var state CheckState
	if err := workflow.ExecuteActivity(titled(ctx, "ask the stack for a drift check"), ActivityRequestCheck,
		request).Get(ctx, &state); err != nil {
		return CheckState{}, err
	}
	for pause := minCheckPause; !state.Ended; pause = min(2*pause, maxCheckPause) {
		if err := workflow.Sleep(ctx, pause); err != nil {
			return CheckState{}, err
		}
		if err := workflow.ExecuteActivity(titled(ctx, "read the state of the check"), ActivityCheckState,
			request).Get(ctx, &state); err != nil {
			return CheckState{}, err
		}
		workflow.SetCurrentDetails(ctx, fmt.Sprintf("**%s** in namespace **%s**: %s", s.Name, s.Namespace, state.Text))
	}
	return state, upsert(ctx, nil, state.Outcome)
}

// ScheduledPlan asks a stack for a plan.
func ScheduledPlan(ctx workflow.Context, s Stack) error {
	ctx = scheduledOptions(ctx)
	request := requestOf(ctx, s)
	return workflow.ExecuteActivity(titled(ctx, "ask the stack for a plan"), ActivityRequestPlan, request).Get(ctx, nil)
}
