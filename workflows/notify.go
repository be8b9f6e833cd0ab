package workflows

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/notification"
)

// NotifyName is the name of the workflow of a Notification, as the Web UI shows it.
const NotifyName = "notification"

// Names of the activities of the workflow.
const (
	ActivityDeliver = "Deliver"
	ActivityGiveUp  = "GiveUp"
)

// SignalTransitions is the signal with the current Transitions of a namespace.
const SignalTransitions = "transitions"

// Notification names the Notification object of a workflow.
type Notification struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
}

// WorkflowID returns the ID of the workflow that sends the messages of the Notification.
func (n Notification) WorkflowID() string {
	return NotifyName + "." + n.Namespace + "." + n.Name + "." + n.UID
}

// Transitions lists all current transitions of a namespace, so that the workflow can forget the others.
type Transitions struct {
	Current []notification.Transition `json:"current"`
}

// NotifyState is the state of a workflow of a Notification. Its size depends on the number of current transitions, and
// not on the number of sent messages.
type NotifyState struct {
	Notification
	// Seen holds the IDs of the current transitions that have a message or are pending.
	Seen    []string                  `json:"seen,omitempty"`
	Pending []notification.Transition `json:"pending,omitempty"`
	// Sent has the times of the last messages.
	Sent []time.Time `json:"sent,omitempty"`
	// Current is the message that the receiver has not accepted yet, and Since the time of the first attempt to send
	// it.
	Current *Delivery `json:"current,omitempty"`
	Since   time.Time `json:"since,omitzero"`
}

// Delivery is the input of the activities: one message, either about a transition or about those that were left out.
type Delivery struct {
	Notification
	Transition *notification.Transition            `json:"transition,omitempty"`
	LeftOut    map[v1alpha1.NotificationReason]int `json:"leftOut,omitempty"`
	// ID and At are those of a message about transitions that were left out.
	ID string    `json:"id,omitempty"`
	At time.Time `json:"at,omitzero"`
	// Attempt is the number of the attempt, from 1 on.
	Attempt int32 `json:"attempt,omitempty"`
}

// Delivered is the result of the activity that sends a message.
type Delivered struct {
	// Sent is true if a request was made. Gone is true if the Notification no longer exists.
	Sent bool `json:"sent,omitempty"`
	Gone bool `json:"gone,omitempty"`
}

const (
	// A Notification sends at most maxMessages messages in each window. One of them then counts those that were left
	// out.
	maxMessages   = 10
	messageWindow = time.Minute
	// DeliveryTimeout is the time for which the server tries to send a message.
	DeliveryTimeout = 6 * time.Hour
	// maxBackoff is the maximum time between two attempts.
	maxBackoff = 10 * time.Minute
	// maxSignals is the number of signals after which the workflow continues as a new one, so that its history stays
	// short.
	maxSignals = 500
)

// take adds the new transitions, and forgets those that are no longer current. For example, nobody can decide about a
// plan that was superseded before its message was sent. A failure stays pending, because its message is still useful.
func (s *NotifyState) take(now Transitions) {
	var seen []string
	s.Pending = slices.DeleteFunc(s.Pending, func(p notification.Transition) bool {
		return p.Reason != v1alpha1.NotifyFailed && !slices.ContainsFunc(now.Current,
			func(t notification.Transition) bool { return t.ID == p.ID })
	})
	for _, t := range now.Current {
		if !slices.Contains(s.Seen, t.ID) {
			s.Pending = append(s.Pending, t)
		}
		seen = append(seen, t.ID)
	}
	s.Seen = seen
}

// next removes the next message from the pending ones and returns it. If the limit delays the message, next removes
// nothing and returns the time to wait.
func (s *NotifyState) next(now time.Time) (d Delivery, pause time.Duration) {
	s.Sent = slices.DeleteFunc(s.Sent, func(at time.Time) bool { return now.Sub(at) >= messageWindow })
	free := maxMessages - len(s.Sent)
	if free <= 0 {
		return d, s.Sent[0].Add(messageWindow).Sub(now)
	}
	d.Notification = s.Notification
	if over := len(s.Pending) - free; over > 0 && free < maxMessages {
		return d, s.Sent[0].Add(messageWindow).Sub(now) // wait for a whole window, and count once
	} else if over > 0 {
		over++ // the message that counts them needs a place, too
		d.LeftOut, d.At = map[v1alpha1.NotificationReason]int{}, now
		d.ID = fmt.Sprintf("%s-leftout-%s", s.UID, s.Pending[0].ID)
		for _, t := range s.Pending[:over] {
			d.LeftOut[t.Reason]++
		}
		s.Pending = slices.Clone(s.Pending[over:])
		return d, 0
	}
	d.Transition = new(s.Pending[0])
	s.Pending = slices.Clone(s.Pending[1:])
	return d, 0
}

// Notify sends the messages of a Notification, one after another, as long as the Notification exists. It retries by
// itself and not by a retry policy: so it receives signals, and can continue as a new workflow, between two attempts.
func Notify(ctx workflow.Context, s NotifyState) error {
	signals := workflow.GetSignalChannel(ctx, SignalTransitions)
	for received := 0; ; {
		var now Transitions
		for signals.ReceiveAsync(&now) {
			s.take(now)
			received++
			now = Transitions{}
		}
		if received >= maxSignals || workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
			return workflow.NewContinueAsNewError(ctx, NotifyName, s)
		}
		if s.Current == nil && len(s.Pending) == 0 {
			if err := workflow.Await(ctx, func() bool { return signals.Len() > 0 }); err != nil {
				return ended(err)
			}
			continue
		}
		if s.Current == nil {
			d, pause := s.next(workflow.Now(ctx))
			if pause > 0 {
				if err := workflow.Sleep(ctx, pause); err != nil {
					return ended(err)
				}
				continue
			}
			s.Current, s.Since = &d, workflow.Now(ctx)
		}
		if gone, err := s.attempt(ctx); err != nil || gone {
			return ended(err)
		}
	}
}

// attempt makes one attempt to send the current message. After a failure it waits, or gives the message up. gone is
// true if the Notification no longer exists.
func (s *NotifyState) attempt(ctx workflow.Context) (gone bool, err error) {
	s.Current.Attempt++
	result, err := deliver(ctx, *s.Current)
	switch {
	case temporal.IsCanceledError(err):
		return false, err
	case err == nil:
		if s.Current, s.Since = nil, (time.Time{}); result.Sent {
			s.Sent = append(s.Sent, workflow.Now(ctx))
		}
		return result.Gone, nil
	case isFinal(err), workflow.Now(ctx).Sub(s.Since) >= DeliveryTimeout:
		given := *s.Current
		s.Current, s.Since, s.Sent = nil, time.Time{}, append(s.Sent, workflow.Now(ctx))
		noting := scheduledOptions(titled(ctx, "note that a message was given up"))
		return false, workflow.ExecuteActivity(noting, ActivityGiveUp, given).Get(ctx, nil)
	}
	return false, workflow.Sleep(ctx, min(maxBackoff, time.Second<<min(s.Current.Attempt-1, 16)))
}

// isFinal reports whether another attempt does not help.
func isFinal(err error) bool {
	final, ok := errors.AsType[*temporal.ApplicationError](err)
	return ok && final.NonRetryable()
}

// deliver makes one attempt to send a message.
func deliver(ctx workflow.Context, d Delivery) (result Delivered, err error) {
	title := "send the number of messages that were left out"
	if t := d.Transition; t != nil {
		title = fmt.Sprintf("send %s of %s %s", t.Reason, t.Kind, t.Name)
	}
	sending := workflow.WithActivityOptions(titled(ctx, title), workflow.ActivityOptions{
		StartToCloseTimeout: 2 * time.Minute, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1},
	})
	err = workflow.ExecuteActivity(sending, ActivityDeliver, d).Get(ctx, &result)
	return result, err
}

// ended returns nil for the error of a workflow that was cancelled, because its Notification was deleted.
func ended(err error) error {
	if temporal.IsCanceledError(err) {
		return nil
	}
	return err
}
