package operation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/planapi"
	"github.com/hykube/hykube/internal/cli/printer"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/cli/terminal"
	"github.com/hykube/hykube/internal/diff"
)

// This file tells how far a plan is: while the server makes it, and while it applies a large one.

// planningLine describes a plan that the server makes, with the server's own words.
func planningLine(p *v1alpha1.Plan, since time.Duration) string {
	text := fmt.Sprintf("Planning %s... %s", p.Name, terminal.Elapsed(since))
	if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady); c != nil && c.Message != "" {
		text += ": " + printer.Flat(c.Message)
	}
	return text
}

// AwaitPlanned waits until planning has ended.
func AwaitPlanned(ctx context.Context, s *session.Session, plan *v1alpha1.Plan) (*v1alpha1.Plan, error) {
	b, began, printed := &terminal.Block{W: s.ErrOut}, time.Now(), time.Now()
	defer func() {
		if b.Drawn > 0 {
			b.Clear()
		}
	}()
	err := Watch(ctx, s, plan, Watching{
		block: b,
		Changed: func(p *v1alpha1.Plan) (bool, error) {
			plan = p
			return planapi.Planned(p), nil
		},
		tick: func() error {
			switch live := s.Live && s.Ask; {
			case live && time.Since(began) > 300*time.Millisecond:
				b.Draw([]string{s.Style.Dim(fitted(s, planningLine(plan, time.Since(began))))})
			case !live && time.Since(printed) >= stillEvery:
				printed = time.Now()
				fmt.Fprintln(s.ErrOut, planningLine(plan, time.Since(began)))
			}
			return nil
		},
		Interrupted: func(<-chan struct{}) error {
			if plan.Spec.Speculative {
				return errors.New("interrupted; nothing was recorded")
			}
			return &interruptedError{plan}
		},
	})
	return plan, err
}

// fitted returns a line that fits on the terminal, so that a block can be redrawn.
func fitted(s *session.Session, line string) string {
	st := s.Style
	if width, _ := s.Size(); width > 0 {
		st.Width = width - 1
	}
	return st.Fit(line)
}

// share formats the part of a plan that has ended, such as "41%".
func share(ended, total int) string {
	if total <= 0 {
		return "0%"
	}
	return fmt.Sprintf("%d%%", 100*ended/total)
}

// minForecast is the time that an apply must have run before the plugin estimates the rest.
const minForecast = 10 * time.Second

// leftText estimates how long the rest of an apply takes, such as "about 3m left". It returns "" without a good
// estimate.
func leftText(ended, total int, since time.Duration) string {
	if ended <= 0 || ended >= total || since < minForecast {
		return ""
	}
	left := time.Duration(float64(since) * float64(total-ended) / float64(ended))
	switch {
	case left < time.Minute:
		return "less than 1m left"
	case left < time.Hour:
		return fmt.Sprintf("about %dm left", int(left.Round(time.Minute).Minutes()))
	}
	return fmt.Sprintf("about %s left", terminal.Elapsed(left))
}

// left estimates how long the rest of the apply takes; "" for a rollout, whose waves and pauses the share does not
// tell.
func (f *follower) left(ended int) string {
	if len(f.plan.Status.Rollouts) > 0 || planapi.Cancelling(f.plan) {
		return ""
	}
	return leftText(ended, total(f.plan), f.applying(time.Now()))
}

// withDetail adds the detail of the first error of a change to a line, unless the line has it.
func withDetail(line string, c *v1alpha1.PlanChange) string {
	i := slices.IndexFunc(c.Diagnostics,
		func(d v1alpha1.Diagnostic) bool { return d.Severity == v1alpha1.SeverityError })
	if i < 0 {
		return line
	}
	if detail := printer.Flat(c.Diagnostics[i].Detail); !strings.Contains(line, detail) {
		line += ": " + detail
	}
	return line
}

// nameFailure prints the first failure of a large plan, of which the progress has only counts.
func (f *follower) nameFailure(ctx context.Context) error {
	p := f.plan.Status.Progress
	if f.named || p == nil || p.Failed == 0 || total(f.plan) <= eachChange || time.Since(f.searched) < stillEvery {
		return nil
	}
	f.searched = time.Now()
	for c, err := range planapi.Changes(ctx, f.Session, f.plan) {
		if err != nil {
			return ctx.Err() // the watch reports if the server stays unreachable
		}
		switch c.State {
		case v1alpha1.ChangeFailed, v1alpha1.ChangeUnknown, v1alpha1.ChangeStale:
			lines := f.changeLines(ctx, c)
			line := withDetail(lines[len(lines)-1], c)
			f.named = true
			f.print([]string{line, f.Style.Dim(
				"The end of the apply lists the other failures; until then they are counted.")})
			return nil
		}
	}
	return nil
}

// countsLine describes a large plan in a pipe.
func (f *follower) countsLine(p *v1alpha1.PlanProgress) string {
	ended := int(p.Done + p.Failed + p.Skipped)
	line := fmt.Sprintf("%s of %s changes made (%s), %s running, %s failed [%s elapsed", diff.Count(int(p.Done)),
		diff.Count(int(p.Total)),
		share(ended, int(p.Total)), diff.Count(int(p.Running)), diff.Count(int(p.Failed)),
		terminal.Elapsed(time.Since(f.began)))
	if left := f.left(ended); left != "" {
		line += ", " + left
	}
	return line + "]"
}
