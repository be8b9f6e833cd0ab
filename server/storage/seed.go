package storage

import "github.com/k3s-io/kine/pkg/query"

// seedSQLite lists keys in pages at a revision. Kine does so once after its start, over all keys, to find those that
// expire. The time of a page of kine's own statement grows with the number of keys behind it, so all pages take
// quadratic time.
var seedSQLite = query.New(current+`,
		k.id, k.name, k.created, k.deleted, k.create_revision, k.prev_revision, k.lease
	FROM kine AS k
	WHERE k.name >= ? AND k.name < ? AND k.id = (SELECT MAX(x.id) FROM kine AS x WHERE x.name = k.name AND x.id <= ?)
		AND (k.deleted = 0 OR ?)
	ORDER BY k.name`, "?", false, "GetRevisionAfter")
