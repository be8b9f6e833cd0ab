package workflows

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// surveys is the maximum number of surveys of a plan whose objects change during planning.
const surveys = 5

// MakePlan makes a plan: it surveys the objects, plans the changes with the providers, and publishes the result. A
// failure sets the Plan's conditions and fails the run.
func MakePlan(ctx workflow.Context, p Plan) (Published, error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: 6 * time.Hour,
		HeartbeatTimeout:    30 * time.Second,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 30 * time.Second, MaximumAttempts: 6,
			NonRetryableErrorTypes: []string{ErrorFinal, ErrorObjectChanged},
		},
	})
	published, err := makePlan(ctx, p)
	outcome := published.Summary
	if err != nil {
		failure := Failure{Plan: p, Message: reason(err)}
		if ferr := workflow.ExecuteActivity(titled(ctx, "record why the plan failed"), ActivityFail, failure).Get(ctx,
			nil); ferr != nil {
			return Published{}, errors.Join(err, ferr)
		}
		published = Published{Summary: "failed", Failed: true}
	}
	if published.Failed {
		outcome = OutcomePlanFailed
	}
	workflow.SetCurrentDetails(ctx, published.details(p))
	if err := upsert(ctx, nil, outcome); err != nil {
		return Published{}, err
	}
	if published.Failed {
		return published, failRun(p, OutcomePlanFailed, "the plan could not be made"+published.named())
	}
	return published, nil
}

// failRun returns the error that fails a run, so that the Web UI shows it as failed. The error omits the cause, because
// a provider's message may hold values that Temporal must not store. The Plan object has the cause.
func failRun(p Plan, outcome, message string) error {
	return temporal.NewNonRetryableApplicationError(message+"; "+p.saysWhy(), outcome, nil)
}

func makePlan(ctx workflow.Context, p Plan) (Published, error) {
	var surveyed Surveyed
	for attempt := 1; ; attempt++ {
		if err := workflow.ExecuteActivity(titled(ctx, "list objects, resolve references"), ActivitySurvey, p).Get(ctx,
			&surveyed); err != nil {
			return Published{}, err
		}
		if err := upsert(ctx, surveyed.Providers, ""); err != nil {
			return Published{}, err
		}
		if surveyed.Invalid || surveyed.Published {
			break
		}
		title := fmt.Sprintf("ask providers about %d of %d resources", surveyed.Visited, surveyed.Resources)
		err := workflow.ExecuteActivity(titled(ctx, title), ActivityPropose,
			Propose{Plan: p, Whole: surveyed.Whole, Last: attempt == surveys}).Get(ctx, nil)
		if err == nil {
			break
		}
		if ae, ok := errors.AsType[*temporal.ApplicationError](err); !ok || ae.Type() != ErrorObjectChanged ||
			attempt == surveys {
			return Published{}, err
		}
	}
	var published Published
	err := workflow.ExecuteActivity(titled(ctx, "store the plan"), ActivityPublish,
		Publish{Plan: p, Resources: surveyed.Resources, Recorded: surveyed.Recorded, ReadTo: surveyed.ReadTo}).Get(ctx,
		&published)
	return published, err
}

// titled sets the summary of an activity, which the Web UI shows beside its name.
func titled(ctx workflow.Context, summary string) workflow.Context {
	options := workflow.GetActivityOptions(ctx)
	options.Summary = summary
	return workflow.WithActivityOptions(ctx, options)
}

// reason returns the message of an activity's error without Temporal's wrapping.
func reason(err error) string {
	if ae, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		return ae.Message()
	}
	return err.Error()
}

var (
	searchProvider = temporal.NewSearchAttributeKeyKeywordList(SearchProvider)
	searchOutcome  = temporal.NewSearchAttributeKeyKeyword(SearchOutcome)
)

// upsert sets search attributes of the run. It leaves those with empty arguments unchanged.
func upsert(ctx workflow.Context, providers []string, outcome string) error {
	var updates []temporal.SearchAttributeUpdate
	if len(providers) > 0 {
		updates = append(updates, searchProvider.ValueSet(providers))
	}
	if outcome != "" {
		updates = append(updates, searchOutcome.ValueSet(outcome))
	}
	if len(updates) == 0 {
		return nil
	}
	return workflow.UpsertTypedSearchAttributes(ctx, updates...)
}
