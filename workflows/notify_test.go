package workflows

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/notification"
)

// sender records the messages of a workflow.
type sender struct {
	env       *testsuite.TestWorkflowEnvironment
	delivered []string
	times     []time.Time
	givenUp   []string
	answer    func(Delivery) (Delivered, error)
}

func newSender(t *testing.T) *sender {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	s := &sender{env: suite.NewTestWorkflowEnvironment(), answer: func(Delivery) (Delivered, error) { return Delivered{Sent: true}, nil }}
	s.env.SetTestTimeout(30 * time.Second)
	s.env.RegisterWorkflowWithOptions(Notify, workflow.RegisterOptions{Name: NotifyName})
	s.env.RegisterActivityWithOptions(func(_ context.Context, d Delivery) (Delivered, error) {
		result, err := s.answer(d)
		if err == nil {
			s.delivered, s.times = append(s.delivered, nameOf(d)), append(s.times, s.env.Now())
		}
		return result, err
	}, activity.RegisterOptions{Name: ActivityDeliver})
	s.env.RegisterActivityWithOptions(func(_ context.Context, d Delivery) error {
		s.givenUp = append(s.givenUp, nameOf(d))
		return nil
	}, activity.RegisterOptions{Name: ActivityGiveUp})
	return s
}

func nameOf(d Delivery) string {
	if d.Transition == nil {
		return fmt.Sprint("left out ", d.LeftOut)
	}
	return d.Transition.ID
}

// tell signals the IDs after a time.
func (s *sender) tell(after time.Duration, reason v1alpha1.NotificationReason, ids ...string) {
	s.env.RegisterDelayedCallback(func() {
		var now Transitions
		for _, id := range ids {
			now.Current = append(now.Current, notification.Transition{ID: id, Reason: reason})
		}
		s.env.SignalWorkflow(SignalTransitions, now)
	}, after)
}

// run runs the workflow until its Notification is deleted after a day.
func (s *sender) run(t *testing.T, state NotifyState) {
	t.Helper()
	s.env.RegisterDelayedCallback(s.env.CancelWorkflow, 24*time.Hour)
	s.env.ExecuteWorkflow(NotifyName, state)
	if err := s.env.GetWorkflowError(); err != nil {
		t.Errorf("the workflow failed: %v", err)
	}
}

func TestEachTransitionHasOneMessage(t *testing.T) {
	s := newSender(t)
	s.tell(time.Second, v1alpha1.NotifyFailed, "a", "b")
	s.tell(time.Minute, v1alpha1.NotifyFailed, "a", "b") // a server that has restarted
	s.tell(2*time.Minute, v1alpha1.NotifyFailed, "b", "c")
	s.run(t, NotifyState{Seen: []string{"before"}})
	if diff := cmp.Diff([]string{"a", "b", "c"}, s.delivered); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

func TestManyTransitionsAtOnce(t *testing.T) {
	s := newSender(t)
	var ids []string
	for i := range 50 {
		ids = append(ids, fmt.Sprintf("p%02d", i))
	}
	s.tell(time.Second, v1alpha1.NotifyFailed, ids...)
	s.tell(5*time.Second, v1alpha1.NotifyFailed, append(ids, "later1", "later2")...)
	s.run(t, NotifyState{})
	want := []string{"left out map[Failed:41]", "p41", "p42", "p43", "p44", "p45", "p46", "p47", "p48", "p49", "later1", "later2"}
	if diff := cmp.Diff(want, s.delivered); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	if pause := s.times[10].Sub(s.times[0]); pause < messageWindow-time.Second {
		t.Errorf("%d messages were sent within %s", maxMessages+1, pause)
	}
}

// TestPlansThatNoLongerWait expects no messages about plans that were superseded while another message was sent.
func TestPlansThatNoLongerWait(t *testing.T) {
	s := newSender(t)
	attempts := 0
	s.answer = func(d Delivery) (Delivered, error) {
		if attempts++; attempts < 5 {
			return Delivered{}, errors.New("the receiver is busy")
		}
		return Delivered{Sent: true}, nil
	}
	s.tell(time.Second, v1alpha1.NotifyAwaitingApproval, "first")
	s.tell(2*time.Second, v1alpha1.NotifyAwaitingApproval, "first", "superseded")
	s.tell(3*time.Second, v1alpha1.NotifyAwaitingApproval, "first", "last")
	s.run(t, NotifyState{})
	if diff := cmp.Diff([]string{"first", "last"}, s.delivered); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

func TestMessagesAreGivenUp(t *testing.T) {
	s := newSender(t)
	attempts, finals := 0, 0
	began := s.env.Now()
	var last time.Time
	s.answer = func(d Delivery) (Delivered, error) {
		switch d.Transition.ID {
		case "never":
			attempts, last = attempts+1, s.env.Now()
			return Delivered{}, errors.New("the receiver is busy")
		case "final":
			finals++
			return Delivered{}, temporal.NewNonRetryableApplicationError("no", ErrorFinal, nil)
		}
		return Delivered{Sent: true}, nil
	}
	s.tell(time.Second, v1alpha1.NotifyFailed, "never", "final", "good")
	s.run(t, NotifyState{})
	if diff := cmp.Diff([]string{"never", "final"}, s.givenUp); diff != "" {
		t.Errorf("given up (-want +got):\n%s", diff)
	}
	if attempts < 40 || last.Sub(began) < DeliveryTimeout-maxBackoff || last.Sub(began) > DeliveryTimeout+maxBackoff {
		t.Errorf("%d attempts within %s", attempts, last.Sub(began))
	}
	if finals != 1 {
		t.Errorf("%d attempts after a final error", finals)
	}
	if diff := cmp.Diff([]string{"good"}, s.delivered); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

func TestANotificationThatIsGoneEndsItsWorkflow(t *testing.T) {
	s := newSender(t)
	s.answer = func(Delivery) (Delivered, error) { return Delivered{Gone: true}, nil }
	s.tell(time.Second, v1alpha1.NotifyFailed, "a", "b")
	s.run(t, NotifyState{})
	if len(s.delivered) != 1 {
		t.Errorf("the workflow tried to send %q", s.delivered)
	}
}

// TestTheWorkflowContinuesAsNew expects the history to stay short, and what was sent to stay known.
func TestTheWorkflowContinuesAsNew(t *testing.T) {
	s := newSender(t)
	for i := range maxSignals {
		s.tell(time.Duration(i)*time.Minute, v1alpha1.NotifyFailed, "a", fmt.Sprint("x", i/400))
	}
	s.env.ExecuteWorkflow(NotifyName, NotifyState{Notification: Notification{Name: "team"}})
	err := s.env.GetWorkflowError()
	again, ok := errors.AsType[*workflow.ContinueAsNewError](err)
	if !ok || again.WorkflowType.Name != NotifyName {
		t.Fatalf("the workflow ended with %v", err)
	}
	var state NotifyState
	if err := converter.GetDefaultDataConverter().FromPayloads(again.Input, &state); err != nil {
		t.Fatal(err)
	}
	state.Sent = nil
	if diff := cmp.Diff(NotifyState{Notification: Notification{Name: "team"}, Seen: []string{"a", "x1"}}, state); diff != "" {
		t.Errorf("the state (-want +got):\n%s", diff)
	}
}

// TestTheWorkflowContinuesWhileAReceiverFails expects the history to stay short also then, and the attempts to go on.
func TestTheWorkflowContinuesWhileAReceiverFails(t *testing.T) {
	s := newSender(t)
	attempts := int32(0)
	s.answer = func(d Delivery) (Delivered, error) {
		if attempts = d.Attempt; attempts == 5 {
			s.env.SetContinueAsNewSuggested(true)
		}
		return Delivered{}, errors.New("the receiver is busy")
	}
	s.tell(time.Second, v1alpha1.NotifyFailed, "a", "b")
	s.env.ExecuteWorkflow(NotifyName, NotifyState{Notification: Notification{Name: "team"}})
	again, ok := errors.AsType[*workflow.ContinueAsNewError](s.env.GetWorkflowError())
	if !ok {
		t.Fatalf("the workflow ended with %v", s.env.GetWorkflowError())
	}
	var state NotifyState
	if err := converter.GetDefaultDataConverter().FromPayloads(again.Input, &state); err != nil {
		t.Fatal(err)
	}
	if state.Current == nil || state.Current.Transition.ID != "a" || state.Current.Attempt != 5 || state.Since.IsZero() || len(state.Pending) != 1 {
		t.Errorf("the workflow continues with %+v", state)
	}
}
