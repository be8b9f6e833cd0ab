package planning

import (
	"iter"
	"runtime"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/internal/bug"
	"github.com/hykube/hykube/internal/ledger"
)

// hashBatch is the number of changes that are hashed at once.
const hashBatch = 500

// hashedChange is a change with the parts of the digest and of the contents of its plan.
type hashedChange struct {
	*ledger.Change
	covered, content []byte
}

func (t *totals) hash(c *ledger.Change) hashedChange {
	return hashedChange{c, changes.Covered(c), t.contents.hash(c)}
}

// hashed hashes changes in parallel, and returns them in their order.
func (t *totals) hashed(all iter.Seq2[*ledger.Change, error]) iter.Seq2[hashedChange, error] {
	return func(yield func(hashedChange, error) bool) {
		var batch []*ledger.Change
		flush := func() bool {
			out := make([]hashedChange, len(batch))
			group := bug.NewGroup()
			workers := runtime.GOMAXPROCS(0)
			for w := range workers {
				group.Go(func() error {
					for i := w; i < len(batch); i += workers {
						out[i] = t.hash(batch[i])
					}
					return nil
				})
			}
			if err := group.Wait(); err != nil {
				yield(hashedChange{}, err)
				return false
			}
			batch = batch[:0]
			for _, c := range out {
				if !yield(c, nil) {
					return false
				}
			}
			return true
		}
		for c, err := range all {
			if err != nil {
				yield(hashedChange{}, err)
				return
			}
			if batch = append(batch, c); len(batch) == hashBatch && !flush() {
				return
			}
		}
		flush()
	}
}
