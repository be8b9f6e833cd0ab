// Package changes reads and writes the stored changes of a plan. It orders their steps, finds stale changes, and
// reports the outcome of a change on its object. Package planning stores the changes, and package applying applies
// them.
package changes

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/plan"
	"github.com/hykube/hykube/internal/schema"

	"github.com/zclconf/go-cty/cty"
	ctymsgpack "github.com/zclconf/go-cty/cty/msgpack"
	"k8s.io/apimachinery/pkg/types"
)

// Stored is a stored plan that is ready for its apply. Its changes lack their values; see ledger.Change.DropValues.
type Stored struct {
	Changes []*ledger.Change
	// Planned is the input of plan.Steps, including the changes that are left out.
	Planned []plan.Planned
	Steps   []plan.Step
	// stepsOf holds the indexes of the steps of each change.
	stepsOf [][]int
	Digest  string
	// Unchanged is true if RecordUnchanged must handle a change. refreshed lists the changes without steps whose values
	// planning read; see readUnchanged.
	Unchanged bool
	refreshed []int32
}

// Load reads the changes of a plan from the ledger and orders their steps.
func Load(ctx context.Context, l *ledger.Ledger, uid types.UID) (*Stored, error) {
	w := &Stored{}
	d := NewDigest()
	for c, err := range l.Changes(ctx, uid, 0) {
		if err != nil {
			return nil, err
		}
		d.Add(c)
		w.Unchanged = w.Unchanged || unchanged(c)
		if readUnchanged(c) {
			w.refreshed = append(w.refreshed, c.Index)
		}
		c.DropValues()
		w.Changes = append(w.Changes, c)
	}
	w.Planned = PlannedChanges(len(w.Changes), func(i int) Brief { return BriefOf(w.Changes[i]) })
	w.Digest = d.String()
	w.Order()
	return w, nil
}

// Order orders the steps of the changes that are not held.
func (w *Stored) Order() {
	made := slices.Clone(w.Planned)
	for i, c := range w.Changes {
		if c.Held {
			made[i] = plan.Planned{Action: v1alpha1.ActionNoOp, Of: -1}
		}
	}
	w.Steps = plan.Steps(made)
	w.stepsOf = make([][]int, len(w.Changes))
	for i, s := range w.Steps {
		w.stepsOf[s.Change] = append(w.stepsOf[s.Change], i)
	}
}

// needsRecording reports whether a NoOp change must record something.
func needsRecording(c *ledger.Change) bool {
	return c.Importing != nil || c.PreviousAddress != "" || c.Checks
}

// LeavesDeposed reports whether a replace ends with the create and leaves the old instance deposed.
func LeavesDeposed(c *ledger.Change) bool { return c.LeaveDeposed && c.CreateBeforeDestroy }

// HasNoSteps reports whether a change has no steps.
func HasNoSteps(c *ledger.Change) bool {
	return c.Action == v1alpha1.ActionNoOp && !needsRecording(c)
}

// Address returns the address of a change.
func (w *Stored) Address(i int) string { return w.Changes[i].Address }

// Progress counts the changes with steps. It counts blocked changes separately, because the approval left them out.
func (w *Stored) Progress() v1alpha1.PlanProgress {
	var p v1alpha1.PlanProgress
	for _, c := range w.Changes {
		if HasNoSteps(c) {
			continue
		}
		if leftOut(c) {
			p.Blocked++
			continue
		}
		p.Total++
		TallyState(&p, c.State, 1)
		if c.HalfDone && c.State == v1alpha1.ChangeFailed {
			p.HalfDone++
		}
	}
	return p
}

// leftOut reports whether a partial approval left out a change because it is blocked.
func leftOut(c *ledger.Change) bool {
	return c.Held && c.Blocked != "" && c.State == v1alpha1.ChangeSkipped
}

// Providers returns the names of the providers of the changes, sorted.
func (w *Stored) Providers() []string {
	var names []string
	for _, c := range w.Changes {
		group, _, _ := strings.Cut(c.Object.APIVersion, "/")
		if name, ok := v1alpha1.ProviderOfGroup(group); ok && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// VersionOutside is the key in DependencyVersions for the ConfigMaps, Secrets and objects of other namespaces that an
// object's expressions refer to.
const VersionOutside = "outside"

// RecordsRefresh reports whether the apply only records the state that planning read.
func RecordsRefresh(c *ledger.Change) bool {
	return HasNoSteps(c) && c.Mode == "" && c.State == v1alpha1.ChangePending && c.Refreshed.Exists()
}

// Blockers returns the changes because of which another one was not attempted. Those that were attempted themselves
// come first.
func (w *Stored) Blockers(c *ledger.Change) []*ledger.Change {
	var tried, others []*ledger.Change
	seen := map[int32]bool{c.Index: true}
	for _, i := range w.stepsOf[c.Index] {
		for _, d := range w.Steps[i].DependsOn {
			dep := w.Changes[w.Steps[d].Change]
			switch {
			case seen[dep.Index] || dep.State == v1alpha1.ChangeDone:
			case dep.State != v1alpha1.ChangeSkipped && dep.State != v1alpha1.ChangePending:
				tried = append(tried, dep)
			default:
				others = append(others, dep)
			}
			seen[dep.Index] = true
		}
	}
	return append(tried, others...)
}

// TallyState adds by to the number of changes in a state.
func TallyState(p *v1alpha1.PlanProgress, state v1alpha1.ChangeState, by int32) {
	switch state {
	case v1alpha1.ChangeRunning:
		p.Running += by
	case v1alpha1.ChangeDone:
		p.Done += by
	case v1alpha1.ChangeFailed, v1alpha1.ChangeStale, v1alpha1.ChangeUnknown:
		p.Failed += by
	case v1alpha1.ChangeSkipped:
		p.Skipped += by
	}
}

// PlannedValue returns the planned value of a change.
func PlannedValue(c *ledger.Change, block *schema.Block) (cty.Value, error) {
	v, err := ctymsgpack.Unmarshal(c.Planned, block.ImpliedType())
	if err == nil {
		v, err = instance.Remark(v, c.PlannedSensitive)
	}
	if err != nil {
		return cty.NilVal, fmt.Errorf("decode planned value of %s: %w", c.Address, err)
	}
	return v, nil
}

// Renewed returns the values of a change that dependants count as changed, although the apply may leave them as they
// are: the unknown ones, and the whole instance. See ledger.Instance.
func Renewed(c *ledger.Change, planned cty.Value) []string {
	if c.Action != v1alpha1.ActionUpdate && c.Action != v1alpha1.ActionRead {
		return nil // all values of a new instance are new
	}
	names := []string{""}
	for name := range planned.Type().AttributeTypes() {
		if !planned.GetAttr(name).IsWhollyKnown() {
			names = append(names, name)
		}
	}
	return names
}

// Indexes converts indexes of changes to ints.
func Indexes(in []int32) []int {
	out := make([]int, len(in))
	for i, v := range in {
		out[i] = int(v)
	}
	return out
}
