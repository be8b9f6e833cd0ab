package activities

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/internal/bug"
	"github.com/hykube/hykube/internal/graph"
	"github.com/hykube/hykube/workflows"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
)

// TestAPanicIsAnErrorOfItsChange panics while a change is planned, and while it is applied.
func TestAPanicIsAnErrorOfItsChange(t *testing.T) {
	const text = "Hykube itself failed: "
	sc := newCrashScenario(t)
	things("a")(sc)
	sc.says(func(*tfprotov6.PlanResourceChangeResponse) { panic("planning") }, nil)
	if said := sc.said(sc.apply()); !strings.Contains(said, text+"planning") || len(sc.cloud.things) != 0 {
		t.Errorf("%d things, and said %q", len(sc.cloud.things), said)
	}
	sc.says(nil, nil)
	sc.apply()
	sc.put("test-thing/a", m{"name": "a", "size": "7"}, nil)
	sc.says(nil, func(*tfprotov6.ApplyResourceChangeResponse) error { panic("applying") })
	run := sc.newRun()
	sc.resume(run)
	if c := sc.changeOf(run, 0); !strings.Contains(c.Message, text+"applying") {
		t.Errorf("the change has the message %q", c.Message)
	}
}

// TestAPanicFailsThePlan panics in an activity, outside of a change.
func TestAPanicFailsThePlan(t *testing.T) {
	var log bytes.Buffer
	survey := bugsAreFinal(withHeartbeats(slog.New(slog.NewTextHandler(&log, nil)), func(context.Context, workflows.Plan) (workflows.Surveyed, error) {
		panic("surveying")
	}))
	env := new(testsuite.WorkflowTestSuite).NewTestActivityEnvironment()
	env.RegisterActivity(survey)
	_, err := env.ExecuteActivity(survey, workflows.Plan{Namespace: "team", Name: "p"})
	failure, ok := errors.AsType[*temporal.ApplicationError](err)
	if !ok || !failure.NonRetryable() || !strings.Contains(failure.Message(), "Hykube itself failed: surveying") {
		t.Errorf("the activity ends with %v", err)
	}
	if text := log.String(); !strings.Contains(text, `while="work on plan team/p"`) || !strings.Contains(text, "bug_test.go") {
		t.Errorf("the log has no stack:\n%s", text)
	}
}

// TestAPanicOfOneOfManyIsAnError panics in one of the goroutines that work on the changes of a plan.
func TestAPanicOfOneOfManyIsAnError(t *testing.T) {
	tracker := graph.NewTracker(8, func(int) []int { return nil })
	err := changes.Each(t.Context(), tracker, 4, func(_ context.Context, i int) (bool, error) {
		if i == 3 {
			panic("one")
		}
		return true, nil
	})
	if !bug.Is(err) {
		t.Errorf("the error is %v", err)
	}
}
