package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diff"
)

const (
	// eachChange is the largest plan whose changes are told one by one; of a larger one only the counts move.
	eachChange = 200
	// withID is the largest plan for which objects are read to tell the ids of what was made.
	withID = 50
	// pollChanges is how often changes are read while some are under way.
	pollChanges = 500 * time.Millisecond
	// stillEvery is how often a pipe hears of a change that takes long.
	stillEvery = 10 * time.Second
)

// follower shows how a plan is applied until it ends.
type follower struct {
	*session
	plan    *v1alpha1.Plan
	began   time.Time
	block   *block
	changes map[int32]*v1alpha1.PlanChange
	told    map[int32]v1alpha1.ChangeState
	still   map[int32]time.Time
	polled  time.Time
	counted time.Time
	running []*v1alpha1.PlanChange
	// waits is what was told of a plan that is being cancelled.
	waits string
}

// ending is how a plan ended: its changes, of a large plan those alone that were not made, and the counts of what was made.
type ending struct {
	changes map[int32]*v1alpha1.PlanChange
	made    v1alpha1.PlanSummary
}

// errDetached ends the watching of a plan that goes on without us.
var errDetached = fmt.Errorf("detached")

// watching is what a command does while it watches a plan. A nil function does nothing.
type watching struct {
	// seen is called with the plan as it is, and each time that it changes. The watch ends when it returns true.
	seen func(*v1alpha1.Plan) (end bool, err error)
	// tick is called ten times a second.
	tick func() error
	// interrupted is called at Ctrl-C; again delivers the next one. The watch ends when it returns an error.
	interrupted func(again <-chan struct{}) error
}

// watch watches a plan until one of the functions ends it.
func (s *session) watch(ctx context.Context, plan *v1alpha1.Plan, w watching) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	stop, done := s.interrupts()
	defer done()
	events := s.watchPlan(ctx, plan)
	for {
		select {
		case e, ok := <-events:
			if !ok {
				return ctx.Err()
			}
			if e.err != nil {
				return e.err
			}
			if end, err := w.seen(e.plan); end || err != nil {
				return err
			}
		case <-tick.C:
			if w.tick == nil {
				continue
			}
			if err := w.tick(); err != nil {
				return err
			}
		case <-stop:
			if err := w.interrupted(stop); err != nil {
				return err
			}
		}
	}
}

// interruptedError says that Ctrl-C ended the wait for a plan that the server goes on making.
type interruptedError struct{ plan *v1alpha1.Plan }

func (e *interruptedError) Error() string {
	return fmt.Sprintf("interrupted: plan %q is still being made on the server, and changes nothing until it is approved: kubectl hykube show %s -n %s",
		e.plan.Name, e.plan.Name, e.plan.Namespace)
}

// awaitPlanned waits until a plan's changes are known.
func (s *session) awaitPlanned(ctx context.Context, plan *v1alpha1.Plan) (*v1alpha1.Plan, error) {
	b, began := &block{w: s.ErrOut}, time.Now()
	defer func() {
		if b.drawn > 0 {
			b.clear()
		}
	}()
	err := s.watch(ctx, plan, watching{
		seen: func(p *v1alpha1.Plan) (bool, error) {
			plan = p
			return planned(p), nil
		},
		tick: func() error {
			if s.live && s.ask && time.Since(began) > 300*time.Millisecond {
				b.draw([]string{s.style.Dim(fmt.Sprintf("Planning %s... %s", plan.Name, elapsed(time.Since(began))))})
			}
			return nil
		},
		interrupted: func(<-chan struct{}) error {
			if plan.Spec.Speculative {
				return errors.New("interrupted; nothing was recorded")
			}
			return &interruptedError{plan}
		},
	})
	return plan, err
}

// follow shows the applying of a plan. It returns the plan as it ended, or errDetached.
func (s *session) follow(ctx context.Context, plan *v1alpha1.Plan) (*v1alpha1.Plan, *ending, error) {
	f := &follower{session: s, plan: plan, began: time.Now(), counted: time.Now(), changes: map[int32]*v1alpha1.PlanChange{}, told: map[int32]v1alpha1.ChangeState{}, still: map[int32]time.Time{}}
	if s.live {
		f.block = &block{w: s.Out}
		defer f.block.clear()
	}
	var end *ending
	err := s.watch(ctx, plan, watching{
		seen: func(p *v1alpha1.Plan) (ended bool, err error) {
			if f.plan = p; p.Ended() {
				end, err = f.end(ctx)
				return true, err
			}
			return false, f.poll(ctx)
		},
		tick: func() error {
			if time.Since(f.polled) > pollChanges {
				if err := f.poll(ctx); err != nil {
					return err
				}
			}
			f.tellSlow()
			f.redraw()
			return nil
		},
		interrupted: func(again <-chan struct{}) error { return f.interrupted(ctx, again) },
	})
	return f.plan, end, err
}

// total is how many changes the plan makes.
func total(p *v1alpha1.Plan) int {
	if p.Status.Progress != nil && p.Status.Progress.Total > 0 {
		return int(p.Status.Progress.Total)
	}
	if s := p.Status.Summary; s != nil {
		return diff.Changes(*s) + int(s.Import+s.Move)
	}
	return 0
}

// poll reads the changes of a plan that is small enough and tells what is new.
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
	for c, err := range f.session.changes(ctx, f.plan) {
		if err != nil {
			if ctx.Err() == nil && !f.plan.Ended() {
				return nil // the watch tells when the server is gone for good
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
		if f.told[c.Index] != c.State && c.State != v1alpha1.ChangePending && c.State != "" {
			done = append(done, c)
		}
	}
	// Between two looks many may have ended. What ended first comes first, and what is under way last.
	slices.SortStableFunc(done, func(a, b *v1alpha1.PlanChange) int { return cmp.Compare(a.Sequence, b.Sequence) })
	var lines []string
	for _, c := range done {
		lines = append(lines, f.tell(ctx, c)...)
	}
	f.print(lines)
	return nil
}

// print writes lines above the moving block.
func (f *follower) print(lines []string) {
	if len(lines) == 0 {
		return
	}
	if f.block != nil {
		f.block.clear()
	}
	for _, l := range lines {
		fmt.Fprintln(f.Out, f.style.Fit(l))
	}
	f.redraw()
}

var doing = map[v1alpha1.Action][3]string{
	v1alpha1.ActionCreate:  {"Creating", "Creation", "creating"},
	v1alpha1.ActionUpdate:  {"Modifying", "Modifications", "updating"},
	v1alpha1.ActionReplace: {"Replacing", "Replacement", "replacing"},
	v1alpha1.ActionDelete:  {"Destroying", "Destruction", "destroying"},
	v1alpha1.ActionRead:    {"Refreshing", "Refresh", "refreshing"},
	v1alpha1.ActionForget:  {"Forgetting", "Removal of its record", "forgetting"},
	v1alpha1.ActionInvoke:  {"Invoking", "Invocation", "invoking"},
}

// words say what is being done to a resource.
func words(c *v1alpha1.PlanChange) [3]string {
	switch {
	case c.Action == v1alpha1.ActionRead && c.Mode == v1alpha1.ModeData:
		return [3]string{"Reading", "Read", "reading"}
	case c.Action == v1alpha1.ActionNoOp && c.Importing != nil:
		return [3]string{"Importing", "Import", "importing"}
	case c.Action == v1alpha1.ActionNoOp:
		return [3]string{"Moving", "Move", "moving"}
	}
	return doing[c.Action]
}

// tell is what there is to say about a change that moved.
func (f *follower) tell(ctx context.Context, c *v1alpha1.PlanChange) []string {
	was := f.told[c.Index]
	f.told[c.Index] = c.State
	words, addr := words(c), f.style.Bold(diff.Name(c)+":")
	var out []string
	begun := func() {
		if was == "" && f.block == nil {
			out = append(out, fmt.Sprintf("%s %s...%s", addr, words[0], f.id(ctx, c, false)))
		}
	}
	took := ""
	if c.StartedAt != nil && c.FinishedAt != nil {
		took = " after " + elapsedSeconds(c.FinishedAt.Sub(c.StartedAt.Time))
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
			out = append(out, fmt.Sprintf("%s %s: %s", addr, f.style.Yellow(halfText(c)), oneLine(c)))
			break
		}
		out = append(out, fmt.Sprintf("%s %s %s: %s", addr, words[1], f.style.Red("failed"), oneLine(c)))
	case v1alpha1.ChangeUnknown:
		out = append(out, fmt.Sprintf("%s %s: %s", addr, f.style.Red("its outcome is unknown"), oneLine(c)))
	case v1alpha1.ChangeSkipped:
		if c.Blocked != "" {
			break // what was left out is listed at the end
		}
		if diff.HalfDone(c) {
			out = append(out, fmt.Sprintf("%s %s: %s", addr, f.style.Yellow(halfText(c)), oneLine(c)))
			break
		}
		out = append(out, fmt.Sprintf("%s %s: %s", addr, f.style.Yellow("skipped"), oneLine(c)))
	case v1alpha1.ChangeStale:
		out = append(out, fmt.Sprintf("%s %s: %s", addr, f.style.Yellow("not applied, it is stale"), oneLine(c)))
	}
	return out
}

func elapsedSeconds(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%ds", int(d.Seconds()))
	}
	return elapsed(d)
}

// halfText says what there is after a replace that was made in half.
func halfText(c *v1alpha1.PlanChange) string {
	if c.CreateBeforeDestroy {
		return "replaced; the old instance still exists until the next plan"
	}
	return "destroyed and not created again"
}

// oneLine is the shortest thing that says why a change is where it is.
func oneLine(c *v1alpha1.PlanChange) string {
	if c.Message != "" {
		return flat(c.Message)
	}
	for _, d := range c.Diagnostics {
		if d.Severity == v1alpha1.SeverityError {
			return flat(d.Summary)
		}
	}
	return "no reason was given"
}

// id is " [id=...]" when the provider's id of a change's resource is known; made is true after the change.
func (f *follower) id(ctx context.Context, c *v1alpha1.PlanChange, made bool) string {
	switch {
	case c.Action == v1alpha1.ActionInvoke:
		return ""
	case c.Action == v1alpha1.ActionDelete, c.Action == v1alpha1.ActionForget, !made:
		return bracketID(diff.Attribute(c.Before, "id"))
	}
	if id := diff.Attribute(c.After, "id"); id != "" {
		return bracketID(id)
	}
	if total(f.plan) > withID {
		return ""
	}
	gvr, _, err := f.mapping(schema.FromAPIVersionAndKind(c.Object.APIVersion, c.Object.Kind))
	if err != nil {
		return ""
	}
	u, err := f.resource(gvr, c.Object.Namespace).Get(ctx, c.Object.Name, metav1.GetOptions{})
	if err != nil {
		return ""
	}
	id, _, _ := unstructured.NestedFieldNoCopy(u.Object, "status", "attributes", "id")
	if id == nil {
		return ""
	}
	return bracketID(fmt.Sprint(id))
}

func bracketID(id string) string {
	if id == "" || id == diff.Masked {
		return ""
	}
	return " [id=" + diff.Clean(id, false) + "]"
}

// tellSlow keeps a pipe informed: every ten seconds of a change that takes long, and of the counts of a large plan.
func (f *follower) tellSlow() {
	if f.block != nil {
		return
	}
	if m := whyCancelling(f.plan); cancelling(f.plan) && m != f.waits {
		f.waits = m // what the server says of it, which changes when providers are asked to stop
		if m != "" {
			fmt.Fprintln(f.Out, diff.Clean(m, true))
		}
	}
	for _, c := range f.running {
		if last, ok := f.still[c.Index]; ok && time.Since(last) >= stillEvery && c.StartedAt != nil {
			f.still[c.Index] = time.Now()
			fmt.Fprintf(f.Out, "%s: Still %s... [%s elapsed]\n", c.Address, doing[c.Action][2], elapsed(time.Since(c.StartedAt.Time).Round(time.Second)))
		}
	}
	if p := f.plan.Status.Progress; p != nil && total(f.plan) > eachChange && time.Since(f.counted) >= stillEvery {
		f.counted = time.Now()
		fmt.Fprintf(f.Out, "%s of %s changes made, %s running, %s failed [%s elapsed]\n", diff.Count(int(p.Done)), diff.Count(int(p.Total)),
			diff.Count(int(p.Running)), diff.Count(int(p.Failed)), elapsed(time.Since(f.began)))
	}
}

// redraw draws the moving block: a bar, the counts, and what is under way.
func (f *follower) redraw() {
	if f.block == nil {
		return
	}
	width, height := f.size()
	if width <= 0 {
		width = 80
	}
	done, failed, all := 0, 0, total(f.plan)
	running := len(f.running)
	if p := f.plan.Status.Progress; p != nil {
		done, failed, running = int(p.Done), int(p.Failed+p.Skipped), max(running, int(p.Running))
	}
	st := f.style
	st.Width = width - 1
	columns := min(30, max(8, width-60))
	painted := bar(done+failed, all, columns)
	if failed > 0 {
		painted = st.Red(painted)
	} else {
		painted = st.Green(painted)
	}
	text := fmt.Sprintf("%s %s %s of %s", st.Bold("Applying "+f.plan.Name), painted, diff.Count(done), diff.Count(all))
	if running > 0 {
		text += fmt.Sprintf("  %s running", diff.Count(running))
	}
	if failed > 0 {
		text += st.Red(fmt.Sprintf("  %s failed or skipped", diff.Count(failed)))
	}
	lines := []string{st.Fit(text + st.Dim("  "+elapsed(time.Since(f.began))))}
	if cancelling(f.plan) {
		lines = append(lines, st.Fit(st.Yellow("  "+waitsFor(f.plan, f.running))))
	}
	room := max(1, min(8, height-4))
	for i, c := range f.running {
		if i == room {
			lines = append(lines, st.Dim(fmt.Sprintf("    … and %d more", len(f.running)-i)))
			break
		}
		since := ""
		if c.StartedAt != nil {
			since = elapsed(time.Since(c.StartedAt.Time))
		}
		lines = append(lines, st.Fit(fmt.Sprintf("  %s %s %s", diff.Symbol(c), diff.Name(c), st.Dim(words(c)[2]+" "+since))))
	}
	f.block.draw(lines)
}

// end tells the rest once the plan is over. Of a large plan the changes are read only when some went wrong.
func (f *follower) end(ctx context.Context) (*ending, error) {
	e := &ending{changes: f.changes}
	if total(f.plan) <= eachChange {
		if err := f.read(ctx); err != nil {
			return nil, err
		}
		for _, c := range f.changes {
			diff.TallyMade(&e.made, c)
		}
		return e, nil
	}
	if p := f.plan.Status.Progress; !stalled(f.plan) && (p == nil || p.Failed+p.Skipped == 0) && f.plan.Status.Summary != nil && f.plan.Status.Summary.Blocked == 0 {
		e.made = *f.plan.Status.Summary
		return e, nil
	}
	for c, err := range f.session.changes(ctx, f.plan) {
		if err != nil {
			return nil, err
		}
		diff.TallyMade(&e.made, c)
		if c.State != v1alpha1.ChangeDone && !diff.Quiet(c) {
			f.changes[c.Index] = c
		}
	}
	return e, nil
}
