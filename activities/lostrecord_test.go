package activities

import (
	"strings"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// loseRecord removes the record of an applied object, as a ledger from before its create has none.
func (sc *crashScenario) loseRecord(name string) {
	sc.T.Helper()
	if err := sc.Ledger.Forget(sc.T.Context(), sc.recordOf(name)); err != nil {
		sc.T.Fatal(err)
	}
}

// TestALostRecordIsNotCreatedAgain plans an applied object whose record is lost.
func TestALostRecordIsNotCreatedAgain(t *testing.T) {
	sc := newCrashScenario(t)
	things("a")(sc)
	sc.apply()
	sc.loseRecord("test-thing/a")
	next := sc.newRun()
	sc.until(next, approving)
	c := sc.changeOf(next, 0)
	if c.State != v1alpha1.ChangeFailed || c.Action == v1alpha1.ActionCreate {
		t.Errorf("the next plan would %s, in the state %s", c.Action, c.State)
	}
	if len(c.Diagnostics) != 1 || !strings.Contains(c.Diagnostics[0].Detail, "the ledger has no record of it") || !strings.Contains(c.Diagnostics[0].Detail, "--retry") {
		t.Errorf("the plan says %v", c.Diagnostics)
	}
	// A user who finds it missing resolves it: the status no longer says that it was applied.
	status := sc.Stored["team:test-thing/a"].Object["status"].(map[string]any)
	status["appliedGeneration"] = int64(0)
	again := sc.newRun()
	sc.until(again, approving)
	if c := sc.changeOf(again, 0); c.Action != v1alpha1.ActionCreate {
		t.Errorf("after the decision, the plan would %s", c.Action)
	}
}

// TestAStepCreatesNothingWithoutTheRecord loses the record between the approval and the step.
func TestAStepCreatesNothingWithoutTheRecord(t *testing.T) {
	sc := newCrashScenario(t)
	things("a")(sc)
	run := sc.newRun()
	sc.until(run, stepping)
	status := map[string]any{"appliedGeneration": int64(1), "observedGeneration": int64(1)}
	if err := unstructured.SetNestedMap(sc.Stored["team:test-thing/a"].Object, status, "status"); err != nil {
		t.Fatal(err)
	}
	c, err := sc.attempt(run, 0, 1, false)
	if err != nil || c.State != v1alpha1.ChangeFailed || !strings.Contains(c.Message, "Record of the resource is lost") {
		t.Errorf("%s %q, %v", c.State, c.Message, err)
	}
	if rec := sc.recordOf("test-thing/a"); rec.Intent != nil || rec.Exists() {
		t.Errorf("the step wrote %+v", rec)
	}
}
