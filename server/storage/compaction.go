package storage

import (
	"context"
	"time"

	"github.com/k3s-io/kine/pkg/query"
)

// compactionStep is the number of revisions that one transaction of a compaction visits.
const compactionStep = 1000

// compact removes revisions that are older than an interval, until ctx ends. Kine would remove all of an interval at
// once, which takes a processor for seconds after a large plan. So compact distributes the transactions over the next
// interval.
func (s *Store) compact(ctx context.Context, interval time.Duration) {
	for old := int64(0); ; {
		last, compacted, err := s.table.revisions(ctx)
		if err != nil { // Ready reports it
			last = old
		}
		steps := max(1, (old-compacted+compactionStep-1)/compactionStep)
		for range steps {
			if pause(ctx, interval/time.Duration(steps)) != nil {
				return
			}
			if compacted = min(compacted+compactionStep, old); err == nil {
				_, _ = s.backend.Compact(ctx, compacted) // kine logs errors, and the next interval tries again
			}
		}
		old = s.table.settled(last) // the watches must see each row first
	}
}

// compactSQLite removes the rows up to a revision that a later row replaced, and deletions. It visits only the rows
// after the last compaction, which has removed all others. Kine's own statement visits all rows up to the revision, in
// each of its transactions for 1000 revisions. So with kine's statement, a compaction takes the longer the more objects
// there are.
var compactSQLite = query.New(`
	DELETE FROM kine
	WHERE id IN (
		SELECT prev_revision FROM kine
		WHERE name != 'compact_rev_key' AND prev_revision != 0
			AND id > (SELECT MAX(prev_revision) FROM kine WHERE name = 'compact_rev_key') AND id <= ?
		UNION
		SELECT id FROM kine
		WHERE deleted != 0
			AND id > (SELECT MAX(prev_revision) FROM kine WHERE name = 'compact_rev_key') AND id <= ?)`,
	"?", false, "Compact")
