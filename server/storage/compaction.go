package storage

import "github.com/k3s-io/kine/pkg/query"

// compactSQLite removes the rows up to a revision that a later row replaced, and deletions. It visits only the rows after the
// last compaction, which has removed all others. Kine's own statement visits all rows up to the revision, in each of its
// transactions for 1000 revisions. So with kine's statement, a compaction takes the longer the more objects there are.
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
