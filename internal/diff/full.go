package diff

import (
	"bufio"
	"io"

	"github.com/hykube/hykube/api/v1alpha1"
)

// Full writes every change of a plan as it comes, page after page, and keeps none.
type Full struct {
	w       *bufio.Writer
	style   Style
	started bool
	counts  v1alpha1.PlanSummary
	drift   []string
	drifted int
	plan    *v1alpha1.Plan
}

// NewFull begins the text of a plan.
func NewFull(w io.Writer, plan *v1alpha1.Plan, style Style) *Full {
	return &Full{w: bufio.NewWriter(w), style: style, plan: plan}
}

// Add writes the next change.
func (f *Full) Add(c *v1alpha1.PlanChange) error {
	count(&f.counts, c)
	if note := driftNote(c); note != "" {
		f.drifted++
		if len(f.drift) < FirstScreen {
			f.drift = append(f.drift, note)
		}
	}
	text := Change(c, f.style)
	if text == "" {
		return nil
	}
	if !f.started {
		f.started = true
		if f.plan.Status.Summary != nil {
			f.write(legend(f.style, *f.plan.Status.Summary))
		}
	}
	_, err := f.w.WriteString(text)
	return err
}

// Close writes what stands below the changes: the drift and the verdict.
func (f *Full) Close() error {
	sum := f.counts
	if f.plan.Status.Summary != nil {
		sum = *f.plan.Status.Summary
	}
	f.write(driftSection(f.style, f.drift, f.drifted))
	f.write([]string{Verdict(f.plan, sum, f.style)})
	return f.w.Flush()
}

func (f *Full) write(lines []string) {
	for _, l := range lines {
		_, _ = f.w.WriteString(l) // the writer keeps its first error for Flush
		_ = f.w.WriteByte('\n')
	}
}
