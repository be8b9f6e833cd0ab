package applying

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/graph"
	"github.com/hykube/hykube/internal/plan"
	"github.com/hykube/hykube/workflows"
)

// rollouts returns the steps of a plan at the pace of the rollouts of its ResourceSets. It is a graph.Waker over a
// tracker.
//
// Dependencies have precedence: if nothing runs and no pause is going on, it releases a step that a rollout holds back.
// Otherwise two sets whose waves depend on each other would wait for each other without end.
type rollouts struct {
	*graph.Tracker
	steps []plan.Step
	// cancelled ends when a user cancels the plan. Then no held step begins.
	cancelled context.Context
	// report is called with the text about a pause when it begins, and with "" when none is left.
	report func(text string)
	now    func() time.Time
	// gate judges the plan before each later wave, and before each step after the first wave.
	gate *waveGate
	// others are the steps of no rollout that wait for the gate.
	others []int

	sets      []*rollout
	instances map[int]*rolledInstance // by the index of the change
	// released is the number of steps that were returned and have not ended.
	released  int
	reported  string
	stopTimer context.CancelFunc
}

// rollout is the state of the rollout of one set.
type rollout struct {
	v1alpha1.PlanRollout
	waves []wave
	// current is the last wave whose instances may begin, and ready has those that may.
	current         int
	ready           []*rolledInstance
	running, failed int32
	// pausedUntil is the end of the pause after the current wave; zero if there is none now. refused is why policies
	// refuse the next changes; "" for a pause of the rollout itself.
	pausedUntil time.Time
	refused     string
	gate        *waveGate
}

// waveGate judges a plan by the current policies, while its rollouts go on.
type waveGate struct {
	// judge returns why the policies refuse the plan; "" if they permit it.
	judge func() string
	now   func() time.Time
	// at is the time of the latest verdict, took the time that it needed, and why the verdict.
	at   time.Time
	took time.Duration
	why  string
}

const (
	// judgeAgain is the time after which the server judges a plan again that policies refused between two waves.
	judgeAgain = time.Minute
	// judgeEvery is the time for which a verdict is valid within a wave.
	judgeEvery = 5 * time.Second
)

// refusal judges the plan and returns why the policies refuse it, or "".
func (g *waveGate) refusal() string {
	began := g.now()
	g.why = g.judge()
	g.at = g.now()
	g.took = g.at.Sub(began)
	return g.why
}

// recentRefusal is refusal, with a verdict of the last seconds. The verdicts of a large plan take at most a tenth of
// the time.
func (g *waveGate) recentRefusal() string {
	if g.at.IsZero() || g.now().Sub(g.at) >= max(judgeEvery, 9*g.took) {
		return g.refusal()
	}
	return g.why
}

// wave is a wave of a rollout.
type wave struct {
	// held are the instances whose dependencies are done, and which a later wave holds back.
	held []*rolledInstance
	// left is the number of instances that have not ended, and endedAt the time at which the last one ended.
	left    int
	endedAt time.Time
}

// rolledInstance is an instance that a rollout changes.
type rolledInstance struct {
	set  *rollout
	wave int
	// waiting are the steps whose dependencies are done, and left is the number of steps that have not ended.
	waiting      []int
	left         int
	begun, ended bool
}

// newRollouts returns the rollouts of a plan, or nil if it has none. It continues from the recorded states of the
// changes.
func newRollouts(po *v1alpha1.Plan, work *changes.Stored, tracker *graph.Tracker) *rollouts {
	if len(po.Status.Rollouts) == 0 {
		return nil
	}
	r := &rollouts{
		Tracker: tracker, steps: work.Steps, instances: map[int]*rolledInstance{},
		cancelled: context.Background(), report: func(string) {}, now: time.Now, stopTimer: func() {},
	}
	r.gate = &waveGate{judge: func() string { return "" }, now: func() time.Time { return r.now() }}
	of := map[types.UID]*rollout{}
	for _, s := range po.Status.Rollouts {
		set := &rollout{PlanRollout: s, waves: make([]wave, len(s.Waves)), gate: r.gate}
		r.sets, of[s.UID] = append(r.sets, set), set
	}
	members := map[*rollout]int32{}
	for i := range work.Changes {
		c := &work.Changes[i]
		if set := of[c.Object.SetUID]; set != nil && c.Rolled {
			r.instances[i] = set.add(c, members[set])
			members[set]++
		}
	}
	for _, s := range work.Steps {
		if in := r.instances[s.Change]; in != nil {
			in.left++
		}
	}
	return r
}

// add adds the n-th instance of the set that the plan changes.
func (s *rollout) add(c *changes.StoredChange, n int32) *rolledInstance {
	in := &rolledInstance{set: s}
	for in.wave < len(s.waves)-1 && n >= s.Waves[in.wave] {
		n -= s.Waves[in.wave]
		in.wave++
	}
	s.waves[in.wave].left++
	switch c.State {
	case v1alpha1.ChangePending:
	case v1alpha1.ChangeRunning:
		in.begin()
	default:
		in.end(c.RolloutFailed(), c.FinishedAt)
	}
	return in
}

func (in *rolledInstance) begin() {
	in.begun = true
	in.set.running++
}

func (in *rolledInstance) end(failed bool, at time.Time) {
	if in.ended {
		return
	}
	if in.begun {
		in.set.running--
	}
	in.begun, in.ended = true, true
	if failed {
		in.set.failed++
	}
	w := &in.set.waves[in.wave]
	w.left--
	if at.After(w.endedAt) {
		w.endedAt = at
	}
}

// Ready implements graph.Source.
func (r *rollouts) Ready() []int {
	var out []int
	for _, i := range r.Tracker.Ready() {
		in := r.instances[r.steps[i].Change]
		switch {
		case in == nil:
			r.others = append(r.others, i)
		case in.begun:
			out = append(out, i)
		default:
			in.wait(i)
		}
	}
	now := r.now()
	if r.cancelled.Err() == nil {
		for _, s := range r.sets {
			out = append(out, s.release(now)...)
		}
	}
	out = append(out, r.releaseOthers(now)...)
	if r.cancelled.Err() == nil {
		if len(out) == 0 && r.released == 0 && !r.pausing() {
			out = r.releaseHeld()
		}
	}
	r.released += len(out)
	r.reportPause()
	return out
}

// releaseOthers returns the steps of no rollout that may begin. After the first wave, they wait while policies refuse
// the plan.
func (r *rollouts) releaseOthers(now time.Time) []int {
	later := func(s *rollout) bool { return s.current > 0 || s.refused != "" }
	if len(r.others) > 0 && r.cancelled.Err() == nil && slices.ContainsFunc(r.sets, later) {
		if why := r.gate.recentRefusal(); why != "" {
			r.sets[0].hold(now, why)
			return nil
		}
	}
	out := r.others
	r.others = nil
	return out
}

// wait adds a step whose dependencies are done.
func (in *rolledInstance) wait(step int) {
	if in.waiting = append(in.waiting, step); len(in.waiting) > 1 {
		return
	}
	if s := in.set; in.wave <= s.current {
		s.ready = append(s.ready, in)
	} else {
		s.waves[in.wave].held = append(s.waves[in.wave].held, in)
	}
}

// release returns the steps of the set that may begin.
func (s *rollout) release(now time.Time) (out []int) {
	s.pausedUntil, s.refused = time.Time{}, ""
	if s.stopped() {
		return nil
	}
	s.advance(now)
	for len(s.ready) > 0 && s.refused == "" && (s.MaxUnavailable == 0 || s.running < s.MaxUnavailable) {
		if s.current > 0 {
			if why := s.gate.recentRefusal(); why != "" {
				s.hold(now, why)
				break
			}
		}
		in := s.ready[0]
		s.ready = s.ready[1:]
		in.begin()
		out = append(out, in.waiting...)
	}
	return out
}

// stopped reports whether too many changes failed.
func (s *rollout) stopped() bool { return s.failed > s.MaxFailures }

// advance opens the waves that follow a wave that has ended, each after its pause.
func (s *rollout) advance(now time.Time) {
	for s.current < len(s.waves)-1 && s.waves[s.current].left == 0 {
		if s.Pause != nil && s.Pause.Duration > 0 {
			if until := wholeSecond(s.waves[s.current].endedAt.Add(s.Pause.Duration)); now.Before(until) {
				s.pausedUntil = until
				return
			}
		}
		if why := s.gate.refusal(); why != "" {
			s.hold(now, why)
			return
		}
		s.open()
	}
}

// hold pauses the rollout, because policies refuse the next changes.
func (s *rollout) hold(now time.Time, why string) {
	s.pausedUntil, s.refused = wholeSecond(now.Add(judgeAgain)), why
}

// wholeSecond rounds a time up to a second, as the API shows it.
func wholeSecond(t time.Time) time.Time {
	return t.Add(time.Second - time.Nanosecond).Truncate(time.Second)
}

// open opens the next wave.
func (s *rollout) open() {
	s.current++
	w := &s.waves[s.current]
	s.ready, w.held = append(s.ready, w.held...), nil
}

// releaseHeld releases the steps of the first instance that a limit of its rollout holds back.
func (r *rollouts) releaseHeld() []int {
	for _, s := range r.sets {
		if s.stopped() {
			continue
		}
		for len(s.ready) == 0 && s.current < len(s.waves)-1 {
			if why := s.gate.refusal(); why != "" {
				s.hold(r.now(), why)
				return nil
			}
			s.open()
		}
		if len(s.ready) > 0 {
			in := s.ready[0]
			s.ready = s.ready[1:]
			in.begin()
			return in.waiting
		}
	}
	return nil
}

func (r *rollouts) pausing() bool {
	until, _ := r.pause()
	return !until.IsZero()
}

// pausedUntil returns the end of the first pause, after the steps that were ready have ended; a zero time if there is
// none, or if the plan was cancelled.
func (r *rollouts) pausedUntil() time.Time {
	if r.cancelled.Err() != nil {
		return time.Time{}
	}
	until, _ := r.pause()
	return until
}

// pause returns the pause that ends first; a zero time if there is none.
func (r *rollouts) pause() (until time.Time, of *rollout) {
	for _, s := range r.sets {
		if !s.pausedUntil.IsZero() && (until.IsZero() || s.pausedUntil.Before(until)) {
			until, of = s.pausedUntil, s
		}
	}
	return until, of
}

func (r *rollouts) reportPause() {
	text := ""
	if until, s := r.pause(); s != nil && r.cancelled.Err() == nil {
		text = fmt.Sprintf("The rollout of the ResourceSet %q pauses until %s, after wave %d of %d.",
			s.ResourceSet, until.UTC().Format(time.TimeOnly+"Z"), s.current+1, len(s.waves))
		if s.refused != "" {
			text = fmt.Sprintf("The rollout of the ResourceSet %q waits after wave %d of %d. %s The server judges the plan again at %s. kubectl hykube cancel ends the plan.",
				s.ResourceSet, s.current+1, len(s.waves), s.refused, until.UTC().Format(time.TimeOnly+"Z"))
		}
	}
	if text != r.reported {
		r.reported = text
		r.report(text)
	}
}

// Wake implements graph.Waker. The channel is closed at the end of the first pause, or when the plan is cancelled.
func (r *rollouts) Wake() <-chan struct{} {
	r.stopTimer()
	until, _ := r.pause()
	if until.IsZero() || r.cancelled.Err() != nil {
		return nil
	}
	var timer context.Context
	timer, r.stopTimer = context.WithDeadline(r.cancelled, until)
	return timer.Done()
}

// Done implements graph.Source.
func (r *rollouts) Done(i int) {
	r.Tracker.Done(i)
	r.released--
	if in := r.instances[r.steps[i].Change]; in != nil {
		if in.left--; in.left == 0 {
			in.end(false, r.now())
		}
	}
}

// Fail implements graph.Source.
func (r *rollouts) Fail(i int) (skipped []int) {
	skipped = r.Tracker.Fail(i)
	r.released--
	if in := r.instances[r.steps[i].Change]; in != nil {
		in.end(true, r.now())
	}
	for _, j := range skipped {
		in := r.instances[r.steps[j].Change]
		switch {
		case in == nil:
		case in.begun: // a replace whose second half is missing
			in.end(true, r.now())
		default:
			// The pause after a wave follows its last change. Each lane skips the instance again, so the present time
			// would begin a new pause each time.
			in.end(false, time.Time{})
		}
	}
	return skipped
}

// paced returns the source of the steps of a plan for its lane, and its rollouts; nil if it has none. The caller must
// call done.
func (a *Applier) paced(ctx context.Context, p workflows.Plan, po *v1alpha1.Plan,
	work *changes.Stored) (source graph.Source, r *rollouts, done func()) {
	steps := work.Steps
	tracker := graph.NewTracker(len(steps), func(i int) []int { return steps[i].DependsOn })
	if r = newRollouts(po, work, tracker); r == nil {
		return tracker, nil, func() {}
	}
	var stop func()
	r.cancelled, stop = a.cancels.UntilCancelled(ctx, p)
	r.report = func(text string) { a.reportRollout(ctx, p, po, text) }
	r.gate.judge = func() string {
		why, err := a.refusedByPolicy(ctx, po, nil)
		if err != nil {
			return fmt.Sprintf("The server cannot evaluate the policies: %v.", err)
		}
		return why
	}
	return r, r, func() {
		stop()
		r.stopTimer()
	}
}

// reportRollout writes to the Plan object that a rollout pauses, or with an empty text that the apply goes on.
func (a *Applier) reportRollout(ctx context.Context, p workflows.Plan, po *v1alpha1.Plan, text string) {
	reason := v1alpha1.ReasonRolloutPaused
	if text == "" {
		reason, text = v1alpha1.ReasonApplying, applyingText
	}
	err := a.Plans.UpdateStatus(ctx, p.Namespace, p.Name, workflows.ObjectUID(p), func(s *v1alpha1.PlanStatus) {
		if !s.Ended() && s.Cancel == nil {
			condition.Reconciling(&s.Conditions, po.Generation, reason, text)
		}
	})
	if err != nil && ctx.Err() == nil {
		a.Logger.WarnContext(ctx, "report the pause of a rollout", "namespace", p.Namespace, "plan", p.Name, "error",
			err)
	}
}

// pause writes to the Plan object until when its apply pauses. The workflow of a cancelled plan does not wait.
func (a *Applier) pause(ctx context.Context, p workflows.Plan, until time.Time) error {
	return a.Plans.UpdateStatus(ctx, p.Namespace, p.Name, workflows.ObjectUID(p), func(s *v1alpha1.PlanStatus) {
		if s.Cancel == nil {
			s.PausedUntil = new(metav1.NewTime(until))
		}
	})
}
