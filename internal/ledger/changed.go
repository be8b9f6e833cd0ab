package ledger

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// ChangedInstance is the state of a record after a change. Instance is nil if the record was deleted.
type ChangedInstance struct {
	Namespace string
	UID       types.UID
	Revision  int64
	Instance  *Instance
}

// InstancesSince returns the last changes of the records of all namespaces that changed after a revision. It returns
// the revision for the next call, and whether there are more changes. It returns errors as KV's Since does.
func (l *Ledger) InstancesSince(ctx context.Context, revision int64,
	limit int) (changes []ChangedInstance, current int64, more bool, err error) {
	const prefix = "instances/"
	page, current, err := l.kv.Since(ctx, prefix, revision, limit)
	if err != nil {
		return nil, current, false, fmt.Errorf("list changed states: %w", err)
	}
	for _, e := range lastChanges(page) {
		namespace, uid, ok := strings.Cut(strings.TrimPrefix(e.Key, prefix), "/")
		if !ok {
			continue
		}
		c := ChangedInstance{Namespace: namespace, UID: types.UID(uid), Revision: e.Revision}
		if !e.Deleted {
			if c.Instance, err = decodeInstance(e.Value, e.Revision); err != nil {
				return nil, 0, false, err
			}
		}
		changes = append(changes, c)
	}
	return changes, current, len(page) >= limit, nil
}

// lastChanges returns the last change of each key.
func lastChanges(page []ChangedEntry) (out []ChangedEntry) {
	last := make(map[string]int64, len(page))
	for _, e := range page {
		last[e.Key] = e.Revision
	}
	for _, e := range page {
		if last[e.Key] == e.Revision {
			out = append(out, e)
		}
	}
	return out
}
