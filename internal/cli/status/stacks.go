package status

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/objects"
	"github.com/hykube/hykube/internal/cli/planapi"
	"github.com/hykube/hykube/internal/cli/printer"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/stack"
)

// This file adds the stacks of a namespace to its overview: those that need attention, and those whose plans wait.

// calmStack holds the reasons of a stack that is not Ready and needs nobody: its work is in progress.
var calmStack = map[string]bool{
	v1alpha1.ReasonSettling: true, v1alpha1.ReasonPlanning: true, v1alpha1.ReasonQueued: true,
	v1alpha1.ReasonApplying:        true,
	v1alpha1.ReasonWorkflowRunning: true, v1alpha1.ReasonAwaitingSchedule: true, v1alpha1.ReasonAwaitingStack: true,
}

// waitingPlan is the plan of a stack that waits for an approval, or that a policy refuses. It selects the objects that
// it plans.
type waitingPlan struct {
	stack, plan string
	denied      bool
	selects     func(labels.Set) bool
}

// addStacks adds the stacks of the namespace. It omits them for a user who may not list stacks.
func (c *census) addStacks(ctx context.Context, s *session.Session) error {
	all, err := planapi.Stacks(ctx, s, c.namespace)
	if apierrors.IsForbidden(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, of := range all {
		if n, ok := stackAttention(of); ok {
			c.stacks = append(c.stacks, n)
		}
		name := stack.LastPlan(of)
		if i := slices.IndexFunc(c.plans, func(p v1alpha1.Plan) bool { return p.Name == name }); i >= 0 &&
			planapi.Waiting(&c.plans[i]) && !planapi.Outdated(&c.plans[i]) {
			c.waiting = append(c.waiting, waitingPlan{of.Name, name, planapi.Denied(&c.plans[i]),
				stack.Selects(of, all)})
		}
	}
	return nil
}

// stackAttention returns what a stack needs from a person: an approval, a right, a correction, or the end of a pause.
// ok is false if it needs nothing.
func stackAttention(s *v1alpha1.Stack) (n noted, ok bool) {
	status, reason, message := planapi.StackReadiness(s)
	n = noted{Kind: "stack", Name: s.Name, Reason: reason, Message: printer.Flat(message)}
	switch d := s.Status.Drift; {
	case status != string(metav1.ConditionTrue) && !calmStack[reason]:
	case d != nil && d.Last != nil && d.Last.Outcome == v1alpha1.DriftFailed:
		n.Reason, n.Message = "DriftCheckFailed", printer.Flat(d.Last.Message)
		if d.Last.EndedAt != nil {
			n.Message = d.Last.EndedAt.UTC().Format(time.RFC3339) + ": " + n.Message
		}
	default:
		return noted{}, false
	}
	if a := s.Status.Author; a != nil {
		n.Message += fmt.Sprintf(" The stack acts for %s.", printer.Flat(a.Username))
	}
	if !strings.Contains(n.Message, "kubectl ") {
		n.Message += fmt.Sprintf(" To read more: kubectl hykube stack status %s -n %s", s.Name, s.Namespace)
	}
	return n, true
}

// notePlan notes the plan that waits for the change of an object with some labels, by the reason of the object.
func (c *census) notePlan(reason string, of labels.Set) {
	if !strings.HasSuffix(objects.ReasonMeanings()[reason], adviceToPlan) {
		return
	}
	for _, w := range c.waiting {
		if w.selects(of) {
			if c.planned[reason] == nil {
				c.planned[reason] = map[string]int{}
			}
			state := "waits for an approval"
			if w.denied {
				state = "is refused by a policy"
			}
			c.planned[reason][fmt.Sprintf("plan %s of stack %s %s: kubectl hykube show %s -n %s", w.plan, w.stack,
				state, w.plan, c.namespace)]++
			return
		}
	}
}

// adviceToPlan ends the explanation of a reason whose objects wait for a plan.
const adviceToPlan = ": kubectl hykube plan"

// wordsOf returns the explanation of a reason, with the plans that wait for its objects in place of the advice to make
// one.
func (c *census) wordsOf(reason string) string {
	plans := c.planned[reason]
	if len(plans) == 0 {
		return objects.ReasonWords(reason)
	}
	texts, covered := slices.Sorted(maps.Keys(plans)), 0
	for _, n := range plans {
		covered += n
	}
	texts = printer.Cut(texts, printer.MaxSkipped, "%d more plans")
	if covered < c.reasons[reason] {
		texts = append(texts, "the others"+adviceToPlan)
	}
	return fmt.Sprintf("%s (%s; %s)", reason, strings.TrimSuffix(objects.ReasonMeanings()[reason], adviceToPlan),
		strings.Join(texts, "; "))
}
