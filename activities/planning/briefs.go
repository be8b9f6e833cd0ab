package planning

import (
	"slices"
	"sync"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/internal/ledger"

	"k8s.io/apimachinery/pkg/types"
)

// briefs are the briefs of a plan's changes, by index.
type briefs struct {
	// mu guards all until all changes are planned.
	mu  sync.Mutex
	all []changes.Brief
}

// count returns the number of changes that the plan has so far.
func (b *briefs) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.all)
}

// deletionOf returns the index of the change of an object that is marked for deletion; false if there is none.
func (b *briefs) deletionOf(object types.UID) (index int32, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.IndexFunc(b.all, func(c changes.Brief) bool { return c.Object.UID == object && c.Deposed == "" })
	return int32(i), i >= 0 && b.all[i].Deleting
}

// briefOf returns the brief of a change.
func (b *briefs) briefOf(i int32) changes.Brief {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all[i]
}

// note updates the brief of a change.
func (b *briefs) note(c *ledger.Change) {
	brief := changes.BriefOf(c)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all[c.Index] = brief
}

// dependOn sets the dependencies in the brief of a change.
func (b *briefs) dependOn(i int32, dependencies []int32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all[i].DependsOn = dependencies
}

// append adds changes to the plan.
func (b *briefs) append(added []*ledger.Change) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range added {
		b.all = append(b.all, changes.BriefOf(c))
	}
}
