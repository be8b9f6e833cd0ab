package diff

import (
	"bufio"
	"io"
	"strings"

	"github.com/hykube/hykube/api/v1alpha1"
)

// legendWithin is the size of the text, in bytes, after which Full writes the legend. The legend omits symbols that
// occur only later.
const legendWithin = 64 << 10

// Full renders every change of a plan page by page, and keeps little in memory.
type Full struct {
	w       *bufio.Writer
	style   Style
	held    strings.Builder
	started bool
	counts  counts
	drift   drift
	plan    *v1alpha1.Plan
}

// NewFull returns a Full that writes to w.
func NewFull(w io.Writer, plan *v1alpha1.Plan, style Style) *Full {
	return &Full{w: bufio.NewWriter(w), style: style, plan: plan, drift: drift{style: style}}
}

// Add writes the next change.
func (f *Full) Add(c *v1alpha1.PlanChange) error {
	f.counts.add(c)
	f.drift.add(c, FirstScreen)
	text := Change(c, f.style)
	if f.started {
		_, err := f.w.WriteString(text)
		return err
	}
	f.held.WriteString(text)
	if f.held.Len() >= legendWithin {
		return f.start()
	}
	return nil
}

// start writes the legend and the buffered text.
func (f *Full) start() error {
	f.started = true
	if f.held.Len() > 0 {
		f.write(f.counts.legend(f.style))
	}
	_, err := f.w.WriteString(f.held.String())
	f.held.Reset()
	return err
}

// Close writes the drift and the verdict below the changes, and flushes.
func (f *Full) Close() error {
	if !f.started {
		if err := f.start(); err != nil {
			return err
		}
	}
	sum := f.counts.PlanSummary
	if f.plan.Status.Summary != nil {
		sum = *f.plan.Status.Summary
	}
	f.write(f.drift.section())
	f.write(f.drift.recorded(sum.RecordUpdates))
	f.write([]string{Verdict(f.plan, sum, f.style)})
	f.write(Outputs(f.plan, f.style))
	f.write(Rollouts(f.plan))
	f.write(Policies(f.plan, f.style, 0))
	return f.w.Flush()
}

func (f *Full) write(lines []string) {
	for _, l := range lines {
		_, _ = f.w.WriteString(l) // the writer keeps its first error for Flush
		_ = f.w.WriteByte('\n')
	}
}
