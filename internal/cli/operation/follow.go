package operation

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/planapi"
	"github.com/hykube/hykube/internal/cli/printer"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/cli/terminal"
	"github.com/hykube/hykube/internal/diff"
)

const (
	// eachChange is the maximum number of changes for which each change is reported. For a larger plan, only the counts
	// are.
	eachChange = 200
	// withID is the maximum number of changes for which objects are read to print their IDs.
	withID = 50
	// pollChanges is the interval at which the changes of a running plan are read.
	pollChanges = 500 * time.Millisecond
	// stillEvery is the interval at which a slow change is reported in a pipe.
	stillEvery = 10 * time.Second
)

// follower prints the progress of an apply until its end.
type follower struct {
	*session.Session
	plan     *v1alpha1.Plan
	began    time.Time
	block    *terminal.Block
	changes  map[int32]*v1alpha1.PlanChange
	reported map[int32]v1alpha1.ChangeState
	still    map[int32]time.Time
	polled   time.Time
	counted  time.Time
	running  []*v1alpha1.PlanChange
	// waits is the last reported message of a plan that is being cancelled, and paused that of a paused rollout.
	waits, paused string
	// named is true after a failure of a large plan was named, and searched is the time of the last search for one.
	named    bool
	searched time.Time
}

// ending is the result of a plan: its changes, and the counts of the applied ones. For a large plan, it has only the
// changes that were not applied.
type ending struct {
	changes map[int32]*v1alpha1.PlanChange
	made    v1alpha1.PlanSummary
}

// ErrDetached is the error if the user stops watching a plan that continues.
var ErrDetached = fmt.Errorf("detached")

// interruptedError is the error if Ctrl-C ends the wait for a plan, which the server continues to make.
type interruptedError struct{ plan *v1alpha1.Plan }

func (e *interruptedError) Error() string {
	return fmt.Sprintf("interrupted: plan %q is still being made on the server, and changes nothing until it is approved: kubectl hykube show %s -n %s",
		e.plan.Name, e.plan.Name, e.plan.Namespace)
}

// follow prints the progress of an apply. It returns the plan after its end, or ErrDetached.
func follow(ctx context.Context, s *session.Session, plan *v1alpha1.Plan) (*v1alpha1.Plan, *ending, error) {
	f := &follower{Session: s, plan: plan, began: time.Now(), counted: time.Now(),
		changes: map[int32]*v1alpha1.PlanChange{}, reported: map[int32]v1alpha1.ChangeState{},
		still: map[int32]time.Time{}}
	if s.Live {
		f.block = &terminal.Block{W: s.Out}
		defer f.block.Clear()
	}
	var end *ending
	err := Watch(ctx, s, plan, Watching{
		block: f.block,
		Changed: func(p *v1alpha1.Plan) (ended bool, err error) {
			if f.plan = p; p.Ended() {
				end, err = f.end(ctx)
				return true, err
			}
			if err := f.poll(ctx); err != nil {
				return false, err
			}
			f.printPause()
			return false, f.nameFailure(ctx)
		},
		tick: func() error {
			if time.Since(f.polled) > pollChanges {
				if err := f.poll(ctx); err != nil {
					return err
				}
			}
			f.printSlowChanges()
			f.redraw()
			return nil
		},
		Interrupted: func(again <-chan struct{}) error { return f.interrupted(ctx, again) },
	})
	return f.plan, end, err
}

// total returns the number of a plan's changes.
func total(p *v1alpha1.Plan) int {
	if p.Status.Progress != nil && p.Status.Progress.Total > 0 {
		return int(p.Status.Progress.Total)
	}
	if s := p.Status.Summary; s != nil {
		return diff.Changes(*s) + int(s.Import+s.Move)
	}
	return 0
}

// poll reads the changes of a small plan and prints the news.
func (f *follower) poll(ctx context.Context) error {
	f.polled = time.Now()
	if total(f.plan) > eachChange {
		return nil
	}
	return f.read(ctx)
}

func (f *follower) read(ctx context.Context) error {
	f.running = f.running[:0]
	var done []*v1alpha1.PlanChange
	for c, err := range planapi.Changes(ctx, f.Session, f.plan) {
		if err != nil {
			if ctx.Err() == nil && !f.plan.Ended() {
				return nil // the watch reports if the server stays unreachable
			}
			return err
		}
		if diff.Quiet(c) {
			continue
		}
		f.changes[c.Index] = c
		if c.State == v1alpha1.ChangeRunning {
			f.running = append(f.running, c)
		}
		if f.reported[c.Index] != c.State && c.State != v1alpha1.ChangePending && c.State != "" {
			done = append(done, c)
		}
	}
	// Many changes may have ended since the last poll. Print them in the order of their end, before the running ones.
	slices.SortStableFunc(done, func(a, b *v1alpha1.PlanChange) int { return cmp.Compare(a.Sequence, b.Sequence) })
	var lines []string
	for _, c := range done {
		lines = append(lines, f.changeLines(ctx, c)...)
	}
	f.print(lines)
	return nil
}

// printPause prints one line when the rollout of a ResourceSet begins to pause.
func (f *follower) printPause() {
	m := planapi.PausedText(f.plan)
	if m == f.paused {
		return
	}
	if f.paused = m; m != "" {
		f.Lines.Paused(f.plan, m)
		f.print([]string{m})
	}
}

// print prints lines above the progress block.
func (f *follower) print(lines []string) {
	if len(lines) == 0 {
		return
	}
	if f.block != nil {
		f.block.Clear()
	}
	for _, l := range lines {
		fmt.Fprintln(f.Out, f.Style.Fit(l))
	}
	f.redraw()
}

// changeLines returns the lines about a change whose state has changed.
func (f *follower) changeLines(ctx context.Context, c *v1alpha1.PlanChange) []string {
	was := f.reported[c.Index]
	f.reported[c.Index] = c.State
	f.printJSONLines(ctx, c, was)
	words, addr := printer.Verbs(c), f.Style.Bold(diff.Name(c)+":")
	var out []string
	begun := func() {
		if was == "" && f.block == nil {
			out = append(out, fmt.Sprintf("%s %s...%s", addr, words[0], f.id(ctx, c, false)))
		}
	}
	add := func(what string) { out = append(out, fmt.Sprintf("%s %s: %s", addr, what, printer.OneLine(c))) }
	took := ""
	if c.StartedAt != nil && c.FinishedAt != nil {
		took = " after " + printer.ElapsedSeconds(c.FinishedAt.Sub(c.StartedAt.Time))
	}
	switch c.State {
	case v1alpha1.ChangeRunning:
		begun()
		f.still[c.Index] = time.Now()
	case v1alpha1.ChangeDone:
		begun()
		out = append(out, fmt.Sprintf("%s %s complete%s%s", addr, words[1], took, f.id(ctx, c, true)))
	case v1alpha1.ChangeFailed:
		begun()
		if diff.HalfDone(c) {
			add(f.Style.Yellow(HalfText(c)))
			break
		}
		out = append(out, fmt.Sprintf("%s %s %s: %s", addr, words[1], f.Style.Red("failed"), printer.OneLine(c)))
	case v1alpha1.ChangeUnknown:
		out = append(out, fmt.Sprintf("%s %s", addr, f.Style.Red("its outcome is unknown"))) // the end has the text
	case v1alpha1.ChangeSkipped:
		if c.Blocked != "" {
			break // the summary lists skipped changes
		}
		if diff.HalfDone(c) {
			add(f.Style.Yellow(HalfText(c)))
			break
		}
		add(f.Style.Yellow("skipped"))
	case v1alpha1.ChangeStale:
		add(f.Style.Yellow("not applied, it is stale"))
	}
	return out
}

// printJSONLines prints a change of state as a line of JSON.
func (f *follower) printJSONLines(ctx context.Context, c *v1alpha1.PlanChange, was v1alpha1.ChangeState) {
	if f.Lines == nil || c.State == v1alpha1.ChangeSkipped || c.State == v1alpha1.ChangeStale {
		return // the summary counts them as not made
	}
	if was == "" {
		f.Lines.Began(c)
	}
	if c.State != v1alpha1.ChangeRunning {
		f.Lines.Ended(c, f.idOf(ctx, c, true))
	}
}

// HalfText describes a replacement of which one half alone succeeded.
func HalfText(c *v1alpha1.PlanChange) string {
	switch c.Left {
	case v1alpha1.LeftTainted:
		return "destroyed; the new instance exists and is tainted"
	case v1alpha1.LeftUnchecked:
		return "replaced; a postcondition of the new instance failed"
	}
	if c.CreateBeforeDestroy {
		return "replaced; the old instance still exists until the next plan"
	}
	return "destroyed and not created again"
}

// id returns " [id=...]" if the ID of a change's resource is known. made is true after the change.
func (f *follower) id(ctx context.Context, c *v1alpha1.PlanChange, made bool) string {
	return bracketID(f.idOf(ctx, c, made))
}

// idOf returns the ID that the provider gave to the resource of a change; "" if the ID is unknown. made is true after
// the change.
func (f *follower) idOf(ctx context.Context, c *v1alpha1.PlanChange, made bool) string {
	switch {
	case c.Action == v1alpha1.ActionInvoke:
		return ""
	case c.Action == v1alpha1.ActionDelete, c.Action == v1alpha1.ActionForget, !made:
		return ShownID(diff.Attribute(c.Before, "id"))
	}
	if id := diff.Attribute(c.After, "id"); id != "" {
		return ShownID(id)
	}
	if total(f.plan) > withID {
		return ""
	}
	gvr, _, err := f.Mapping(schema.FromAPIVersionAndKind(c.Object.APIVersion, c.Object.Kind))
	if err != nil {
		return ""
	}
	u, err := f.Resource(gvr, c.Object.Namespace).Get(ctx, c.Object.Name, metav1.GetOptions{})
	if err != nil {
		return ""
	}
	id, _, _ := unstructured.NestedFieldNoCopy(u.Object, "status", "attributes", "id")
	if id == nil {
		return ""
	}
	return ShownID(fmt.Sprint(id))
}

// ShownID returns an ID without control characters; "" if the ID is masked.
func ShownID(id string) string {
	if id == diff.Masked {
		return ""
	}
	return diff.Clean(id, false)
}

func bracketID(id string) string {
	if id == "" {
		return ""
	}
	return " [id=" + id + "]"
}

// printSlowChanges prints progress in a pipe: at intervals, a slow change, and the counts of a large plan.
func (f *follower) printSlowChanges() {
	if f.block != nil {
		return
	}
	if m := planapi.WhyCancelling(f.plan); planapi.Cancelling(f.plan) && m != f.waits {
		f.waits = m // the server's message, which changes when the server asks providers to stop
		if m != "" {
			fmt.Fprintln(f.Out, diff.Clean(m, true))
		}
	}
	for _, c := range f.running {
		if last, ok := f.still[c.Index]; ok && time.Since(last) >= stillEvery && c.StartedAt != nil {
			f.still[c.Index] = time.Now()
			f.Lines.Still(c, time.Since(c.StartedAt.Time))
			fmt.Fprintf(f.Out, "%s: Still %s... [%s elapsed]\n", c.Address, printer.ActionVerbs[c.Action][2],
				terminal.Elapsed(time.Since(c.StartedAt.Time).Round(time.Second)))
		}
	}
	if p := f.plan.Status.Progress; p != nil && total(f.plan) > eachChange && time.Since(f.counted) >= stillEvery {
		f.counted = time.Now()
		fmt.Fprintln(f.Out, f.countsLine(p))
	}
}

// redraw draws the progress block: a bar, the counts, and the running changes.
func (f *follower) redraw() {
	if f.block == nil {
		return
	}
	width, height := f.Size()
	if width <= 0 {
		width = 80
	}
	done, failed, all := 0, 0, total(f.plan)
	running := len(f.running)
	if p := f.plan.Status.Progress; p != nil {
		done, failed, running = int(p.Done), int(p.Failed+p.Skipped), max(running, int(p.Running))
	}
	st := f.Style
	st.Width = width - 1
	columns := min(30, max(8, width-60))
	painted := terminal.Bar(done+failed, all, columns)
	if failed > 0 {
		painted = st.Red(painted)
	} else {
		painted = st.Green(painted)
	}
	text := fmt.Sprintf("%s %s %s of %s (%s)", st.Bold("Applying "+f.plan.Name), painted, diff.Count(done),
		diff.Count(all), share(done+failed, all))
	if running > 0 {
		text += fmt.Sprintf("  %s running", diff.Count(running))
	}
	if failed > 0 {
		text += st.Red(fmt.Sprintf("  %s failed or skipped", diff.Count(failed)))
	}
	since := terminal.Elapsed(f.applying(time.Now()))
	if left := f.left(done + failed); left != "" {
		since += ", " + left
	}
	lines := []string{st.Fit(text + st.Dim("  "+since))}
	if m := planapi.PausedText(f.plan); m != "" {
		lines = append(lines, st.Fit(st.Yellow("  "+m)))
	}
	if planapi.Cancelling(f.plan) {
		lines = append(lines, st.Fit(st.Yellow("  "+planapi.WaitsFor(f.plan, f.running))))
	}
	room := max(1, min(8, height-4))
	for i, c := range f.running {
		if i == room {
			lines = append(lines, st.Dim(fmt.Sprintf("    … and %d more", len(f.running)-i)))
			break
		}
		runs := ""
		if c.StartedAt != nil {
			runs = terminal.Elapsed(f.runningFor(time.Now(), c))
		}
		lines = append(lines, st.Fit(fmt.Sprintf("  %s %s %s", diff.Symbol(c), diff.Name(c),
			st.Dim(printer.Verbs(c)[2]+" "+runs))))
	}
	f.block.Draw(lines)
}

// applying returns the time since the approval, or since the command began to follow the plan right after that.
func (f *follower) applying(now time.Time) time.Duration {
	if a := f.plan.Status.Approval; a != nil && a.At != nil && f.began.Sub(a.At.Time) > time.Second {
		return now.Sub(a.At.Time)
	}
	return now.Sub(f.began)
}

// runningFor returns the time for which a change has run. The server records its start without fractions of a second,
// so the difference to now may be longer than the apply.
func (f *follower) runningFor(now time.Time, c *v1alpha1.PlanChange) time.Duration {
	return max(0, min(now.Sub(c.StartedAt.Time), f.applying(now)))
}

// end prints the last news after the plan has ended. It reads the changes of a large plan only if some failed.
func (f *follower) end(ctx context.Context) (*ending, error) {
	e := &ending{changes: f.changes}
	if total(f.plan) <= eachChange || f.Lines != nil {
		if err := f.read(ctx); err != nil {
			return nil, err
		}
		for _, c := range f.changes {
			diff.CountApplied(&e.made, c)
		}
		return e, nil
	}
	if p := f.plan.Status.Progress; !planapi.Stalled(f.plan) && (p == nil || p.Failed+p.Skipped == 0) &&
		f.plan.Status.Summary != nil && f.plan.Status.Summary.Blocked == 0 {
		e.made = *f.plan.Status.Summary
		return e, nil
	}
	for c, err := range planapi.Changes(ctx, f.Session, f.plan) {
		if err != nil {
			return nil, err
		}
		diff.CountApplied(&e.made, c)
		if c.State != v1alpha1.ChangeDone && !diff.Quiet(c) {
			f.changes[c.Index] = c
		}
	}
	return e, nil
}
