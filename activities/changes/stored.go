// Package changes reads and writes the stored changes of a plan. It orders their steps, finds stale changes, and
// reports the outcome of a change on its object. Package planning stores the changes, and package applying applies
// them.
package changes

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/plan"
	"github.com/hykube/hykube/internal/schema"

	"github.com/zclconf/go-cty/cty"
	ctymsgpack "github.com/zclconf/go-cty/cty/msgpack"
	"k8s.io/apimachinery/pkg/types"
)

// Stored is a stored plan that is ready for its apply.
type Stored struct {
	Changes []StoredChange
	// Planned is the input of plan.Steps, including the changes that are left out.
	Planned []plan.Planned
	Steps   []plan.Step
	// stepsOf holds the indexes of the steps of each change, which has at most two; -1 for none.
	stepsOf [][2]int32
	Digest  string
	// Unchanged is true if RecordUnchanged must handle a change. refreshed lists the changes without steps whose values
	// planning read; see readUnchanged.
	Unchanged bool
	refreshed []int32
}

// StoredChange is the brief of a stored change with its progress.
type StoredChange struct {
	Brief
	Index               int32
	CreateBeforeDestroy bool
	DeposedKey          string
	// Held, HalfDone, Left, StaleReason and Message are those of the change. Diagnosed is true if the change has
	// diagnostics.
	Held, HalfDone, Diagnosed bool
	Left                      v1alpha1.LeftInstance
	StaleReason               v1alpha1.StaleReason
	Message                   string
	// Begun is true if a step of the change has begun. FinishedAt is zero before the change ended.
	Begun      bool
	FinishedAt time.Time

	// Hash is that of HashOf; 0 if the plan has no briefs.
	Hash uint64
	// inputs are those of the change; nil if the plan has no briefs.
	inputs *Inputs
}

// StoredChangeOf returns the brief and the progress of a change.
func StoredChangeOf(c *ledger.Change) StoredChange {
	s := StoredChange{
		Brief: BriefOf(c), Index: c.Index, CreateBeforeDestroy: c.CreateBeforeDestroy, DeposedKey: c.DeposedKey,
		Held: c.Held, HalfDone: c.HalfDone, Left: c.Left, Diagnosed: len(c.Diagnostics) > 0, StaleReason: c.StaleReason,
		Message: c.Message, Begun: c.StartedAt != nil,
	}
	if c.FinishedAt != nil {
		s.FinishedAt = c.FinishedAt.Time
	}
	return s
}

// Edit changes the progress of a stored change, in the ledger and in w.
func (w *Stored) Edit(ctx context.Context, l *ledger.Ledger, plan types.UID, i int,
	edit func(*ledger.Change)) (*StoredChange, error) {
	c, err := l.Change(ctx, plan, int32(i))
	if err != nil {
		return nil, err
	}
	edit(c)
	if err := l.SaveChange(ctx, plan, c); err != nil {
		return nil, err
	}
	edited := StoredChangeOf(c)
	edited.inputs, edited.Hash = w.Changes[i].inputs, w.Changes[i].Hash
	w.Changes[i] = edited
	return &w.Changes[i], nil
}

// Load reads the changes of a plan from the ledger and orders their steps. It reads the briefs of a published plan, and
// otherwise the changes.
func Load(ctx context.Context, l *ledger.Ledger, uid types.UID) (*Stored, error) {
	w := &Stored{}
	loaded, err := w.loadBriefs(ctx, l, uid)
	if err == nil && !loaded {
		err = w.loadChanges(ctx, l, uid)
	}
	if err != nil {
		return nil, err
	}
	w.Planned = PlannedChanges(len(w.Changes), func(i int) *Brief { return &w.Changes[i].Brief })
	w.Order()
	return w, nil
}

// loadChanges loads a plan from its changes.
func (w *Stored) loadChanges(ctx context.Context, l *ledger.Ledger, uid types.UID) error {
	d := NewDigest()
	for c, err := range l.Changes(ctx, uid, 0) {
		if err != nil {
			return err
		}
		d.Add(Covered(c))
		w.Unchanged = w.Unchanged || unchanged(c)
		if readUnchanged(c) {
			w.refreshed = append(w.refreshed, c.Index)
		}
		w.Changes = append(w.Changes, StoredChangeOf(c))
	}
	w.Digest = d.String()
	return nil
}

// Order orders the steps of the changes that are not held.
func (w *Stored) Order() {
	made, copied := w.Planned, false
	for i := range w.Changes {
		if !w.Changes[i].Held {
			continue
		}
		if !copied {
			made, copied = slices.Clone(made), true
		}
		made[i] = plan.Planned{Action: v1alpha1.ActionNoOp, Of: -1}
	}
	w.Steps = plan.Steps(made)
	w.stepsOf = slices.Repeat([][2]int32{{-1, -1}}, len(w.Changes))
	for i, s := range w.Steps {
		if of := &w.stepsOf[s.Change]; of[0] < 0 {
			of[0] = int32(i)
		} else {
			of[1] = int32(i)
		}
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
	for i := range w.Changes {
		c := &w.Changes[i]
		if c.NoSteps {
			continue
		}
		if c.leftOut() {
			p.Blocked++
			continue
		}
		p.Total++
		TallyState(&p, c.State, 1)
		// otherwise the second half made an instance
		if c.HalfDone && c.State == v1alpha1.ChangeFailed && c.Left == "" {
			p.HalfDone++
		}
	}
	return p
}

// leftOut reports whether a partial approval left out a change because it is blocked.
func (c *StoredChange) leftOut() bool {
	return c.Held && c.Blocked != "" && c.State == v1alpha1.ChangeSkipped
}

// Providers returns the names of the providers of the changes, sorted.
func (w *Stored) Providers() []string {
	var names []string
	for i := range w.Changes {
		c := &w.Changes[i]
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

// VersionOfConfig returns the key in DependencyVersions for the version of a ProviderConfig.
func VersionOfConfig(name string) string { return "ProviderConfig/" + name }

// RecordsRefresh reports whether the apply only records the state that planning read.
func RecordsRefresh(c *ledger.Change) bool {
	return HasNoSteps(c) && c.Mode == "" && c.State == v1alpha1.ChangePending && c.Refreshed.Exists()
}

// Blockers returns the changes because of which another one was not attempted. Those that were attempted themselves
// come first.
func (w *Stored) Blockers(c *StoredChange) []*StoredChange {
	var tried, others []*StoredChange
	seen := map[int32]bool{c.Index: true}
	for _, i := range w.stepsOf[c.Index] {
		if i < 0 {
			continue
		}
		for _, d := range w.Steps[i].DependsOn {
			dep := &w.Changes[w.Steps[d].Change]
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
