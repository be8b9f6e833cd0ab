package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// StatusKey identifies the status of an instance of a ResourceSet. An instance has no object in the store of the API,
// so the ledger keeps its status.
type StatusKey struct {
	Namespace string
	// Set and UID are the UIDs of the set and of the instance.
	Set, UID types.UID
}

const statusesPrefix = "statuses/"

func (k StatusKey) prefix() string { return statusesPrefix + k.Namespace + "/" + string(k.Set) + "/" }

func (k StatusKey) key() string { return k.prefix() + string(k.UID) }

func parseStatusKey(s string) (k StatusKey, ok bool) {
	part := strings.Split(strings.TrimPrefix(s, statusesPrefix), "/")
	if len(part) != 3 {
		return k, false
	}
	return StatusKey{part[0], types.UID(part[1]), types.UID(part[2])}, true
}

// Status is the status of an instance after its last write. Value is nil if it was deleted.
type Status struct {
	StatusKey
	Value    json.RawMessage
	Revision int64
}

// Status returns the status of an instance. Without one, the result has no value and the revision 0.
func (l *Ledger) Status(ctx context.Context, k StatusKey) (Status, error) {
	value, revision, err := l.kv.Get(ctx, k.key())
	if errors.Is(err, ErrNotFound) {
		return Status{StatusKey: k}, nil
	}
	if err != nil {
		return Status{}, fmt.Errorf("read status of instance: %w", err)
	}
	return Status{k, value, revision}, nil
}

// SaveStatus writes a status. It returns ErrConflict if another writer changed it since it was read.
func (l *Ledger) SaveStatus(ctx context.Context, s Status) error {
	if _, err := l.kv.Put(ctx, s.key(), s.Value, s.Revision); err != nil {
		return fmt.Errorf("save status of instance: %w", err)
	}
	return nil
}

// ForgetStatus deletes the status of an instance.
func (l *Ledger) ForgetStatus(ctx context.Context, k StatusKey) error {
	s, err := l.Status(ctx, k)
	if err != nil || s.Revision == 0 {
		return err
	}
	if err := l.kv.Delete(ctx, k.key(), s.Revision); err != nil {
		return fmt.Errorf("delete status of instance: %w", err)
	}
	return nil
}

// ForgetStatuses deletes the statuses of all instances of a set that is gone, and with what they were applied.
func (l *Ledger) ForgetStatuses(ctx context.Context, namespace string, set types.UID) error {
	for _, prefix := range []string{StatusKey{Namespace: namespace, Set: set}.prefix(), appliedPrefix(namespace, set)} {
		if err := l.kv.DeletePrefix(ctx, prefix); err != nil {
			return fmt.Errorf("delete statuses of instances: %w", err)
		}
	}
	return nil
}

// Statuses returns the statuses of all instances.
func (l *Ledger) Statuses(ctx context.Context) iter.Seq2[Status, error] {
	return func(yield func(Status, error) bool) {
		for e, err := range l.scan(ctx, statusesPrefix, "") {
			if err != nil {
				yield(Status{}, fmt.Errorf("list statuses of instances: %w", err))
				return
			}
			if k, ok := parseStatusKey(e.Key); ok && !yield(Status{k, e.Value, e.Revision}, nil) {
				return
			}
		}
	}
}

// StatusesSince returns the last changes of the statuses that changed after a revision; see InstancesSince.
func (l *Ledger) StatusesSince(ctx context.Context, revision int64,
	limit int) (changes []Status, current int64, more bool, err error) {
	page, current, err := l.kv.Since(ctx, statusesPrefix, revision, limit)
	if err != nil {
		return nil, current, false, fmt.Errorf("list changed statuses of instances: %w", err)
	}
	for _, e := range lastChanges(page) {
		k, ok := parseStatusKey(e.Key)
		if !ok {
			continue
		}
		s := Status{StatusKey: k, Revision: e.Revision}
		if !e.Deleted {
			s.Value = e.Value
		}
		changes = append(changes, s)
	}
	return changes, current, len(page) >= limit, nil
}
