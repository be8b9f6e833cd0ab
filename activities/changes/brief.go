package changes

import (
	"slices"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/plan"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/store"
)

// Brief has the facts about a change that the other changes of its plan need. It lacks the values of the change, so
// that all briefs of a large plan fit into memory.
type Brief struct {
	Address, PreviousAddress string
	// Deposed is the key of a deposed instance; "" for the current one.
	Deposed        string
	Mode           v1alpha1.Mode
	Object         v1alpha1.ObjectReference
	ProviderConfig string
	Action         v1alpha1.Action
	State          v1alpha1.ChangeState
	// Deleting is true if the object was marked for deletion. From is the object whose record moves; nil without one.
	Deleting bool
	From     *v1alpha1.ObjectReference
	// NoSteps has the result of HasNoSteps.
	NoSteps bool
	// Rolled has the result of Rolled. Gone is true if planning did not find the recorded infrastructure.
	Rolled    bool
	Gone      bool
	Imports   bool
	Prevented bool
	Blocked   string
	DependsOn []int32

	// Discloses are those of the change.
	Discloses []ledger.Origin
	// Contributors and OtherOwner are those of the change.
	Contributors []v1alpha1.Contributor
	OtherOwner   bool

	// Requires lists the addresses that the recorded state referred to.
	Requires []string

	// Requested is that of the change. CreatesFirst, Forgets and Records are the facts with which plan.Steps orders it.
	Requested, CreatesFirst, Forgets, Records bool
}

// BriefOf returns the brief of a change. Briefs share equal texts, and so does the change afterwards.
func BriefOf(c *ledger.Change) Brief {
	c.ShareTexts()
	return Brief{
		Address: c.Address, PreviousAddress: c.PreviousAddress, Deposed: c.Deposed, Mode: c.Mode, Object: c.Object,
		ProviderConfig: c.ProviderConfig,
		Action:         c.Action, State: c.State, Deleting: c.Preconditions.Deleting, From: c.Preconditions.From,
		NoSteps: HasNoSteps(c), Rolled: Rolled(&c.PlanChange), Gone: foundGone(c),
		Imports: c.Importing != nil, Prevented: c.Prevented, Blocked: c.Blocked, DependsOn: slices.Clip(c.DependsOn),
		Requested: c.Requested, CreatesFirst: c.CreateBeforeDestroy ||
			c.Action == v1alpha1.ActionDelete && c.CreatesFirst, Forgets: c.Forget || LeavesDeposed(c),
		Records: needsRecording(c), Requires: slices.Clip(c.Requires), Discloses: c.Discloses,
		Contributors: c.Contributors, OtherOwner: c.OtherOwner,
	}
}

// Rights returns the rights that the change requires; see Rights. It omits those to a replaced instance.
func (b *Brief) Rights(src *scope.Sources) ([]store.Right, error) {
	c := &ledger.Change{}
	c.Object, c.Action, c.PreviousAddress, c.ProviderConfig = b.Object, b.Action, b.PreviousAddress, b.ProviderConfig
	c.Preconditions.From = b.From
	if b.Imports {
		c.Importing = &v1alpha1.PlanImport{}
	}
	return Rights(src, c, nil)
}

// PlannedChanges converts n changes, of which brief returns the briefs, to the input of plan.Steps.
func PlannedChanges(n int, brief func(i int) *Brief) []plan.Planned {
	at := addressed(n, brief)
	planned := make([]plan.Planned, n)
	for i := range n {
		c := brief(i)
		planned[i] = plan.Planned{
			Action: c.Action, CreateBeforeDestroy: c.CreatesFirst, Forget: c.Forgets, Record: c.Records,
			Deposed: c.Deposed != "", Of: -1, Requested: c.Requested, DependsOn: Indexes(c.DependsOn),
		}
		for _, addr := range c.Requires {
			planned[i].Requires = append(planned[i].Requires, at[addr]...)
		}
		for _, j := range at[c.Address] {
			if c.Deposed != "" && brief(j).Deposed == "" {
				planned[i].Of = j
			}
		}
	}
	return planned
}

// addressed returns the indexes of the changes with each address, including deposed instances, because a recorded
// reference may mean either. It returns nil if no change needs them, as in a plan of creates.
func addressed(n int, brief func(i int) *Brief) map[string][]int {
	needed := false
	for i := 0; i < n && !needed; i++ {
		needed = len(brief(i).Requires) > 0 || brief(i).Deposed != ""
	}
	if !needed {
		return nil
	}
	at := make(map[string][]int, n)
	for i := range n {
		c := brief(i)
		at[c.Address] = append(at[c.Address], i)
		if c.PreviousAddress != "" {
			at[c.PreviousAddress] = append(at[c.PreviousAddress], i) // the recorded state has the former address
		}
	}
	return at
}
