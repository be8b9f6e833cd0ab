package ledger

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"iter"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/bug"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// This file stores the changes of plans. The row of a change holds its planned part and its progress, separated by a
// newline. The apply writes the progress to a second row, which then replaces the progress in the first row. So it does
// not write the values before and after again. The second rows have a prefix of their own, so that a reader of them
// alone skips the others.

const (
	// minDecoded is the minimum number of rows that are decoded in parallel to others.
	minDecoded = 32
	// maxBatchChanges and maxBatchBytes limit the changes of one batch.
	maxBatchChanges = 200
	maxBatchBytes   = 1 << 20
)

// planHash is the seed of Change.planned.
var planHash = maphash.MakeSeed()

// progress is the part of a change that its apply writes.
type progress struct {
	State       v1alpha1.ChangeState  `json:"state,omitempty"`
	HalfDone    bool                  `json:"halfDone,omitempty"`
	MayExist    bool                  `json:"mayExist,omitempty"`
	Left        v1alpha1.LeftInstance `json:"left,omitempty"`
	Held        bool                  `json:"held,omitempty"`
	StaleReason v1alpha1.StaleReason  `json:"staleReason,omitempty"`
	Message     string                `json:"message,omitempty"`
	Diagnostics []v1alpha1.Diagnostic `json:"diagnostics,omitempty"`
	Unevaluated bool                  `json:"unevaluated,omitempty"`
	StartedAt   *metav1.Time          `json:"startedAt,omitempty"`
	FinishedAt  *metav1.Time          `json:"finishedAt,omitempty"`
	Hashes      map[string]string     `json:"hashes,omitempty"`
}

func (c *Change) progress() progress {
	return progress{c.State, c.HalfDone, c.MayExist, c.Left, c.Held, c.StaleReason, c.Message, c.Diagnostics,
		c.Unevaluated, c.StartedAt, c.FinishedAt, c.Hashes}
}

func (c *Change) setProgress(p progress) {
	c.State, c.HalfDone, c.MayExist, c.Left, c.Held = p.State, p.HalfDone, p.MayExist, p.Left, p.Held
	c.StaleReason, c.Message, c.Diagnostics, c.Unevaluated = p.StaleReason, p.Message, p.Diagnostics, p.Unevaluated
	c.StartedAt, c.FinishedAt, c.Hashes = p.StartedAt, p.FinishedAt, p.Hashes
}

// encodedChange is a change as it is stored.
type encodedChange struct{ planned, progress []byte }

func (e encodedChange) size() int { return len(e.planned) + len(e.progress) }

func encodeChange(c *Change) (e encodedChange, err error) {
	planned := *c
	planned.setProgress(progress{})
	// JSON decodes null to nil, and a loaded change must be encoded as it is stored.
	planned.Before, planned.After = nonNull(planned.Before), nonNull(planned.After)
	if e.planned, err = json.Marshal(&planned); err != nil {
		return e, fmt.Errorf("encode change %d of plan: %w", c.Index, err)
	}
	e.progress, err = c.encodeProgress()
	return e, err
}

// nonNull returns nil for null, and other values as they are.
func nonNull(v *apiruntime.RawExtension) *apiruntime.RawExtension {
	if v != nil && string(v.Raw) == "null" {
		return nil
	}
	return v
}

func (c *Change) encodeProgress() ([]byte, error) {
	encoded, err := json.Marshal(c.progress())
	if err != nil {
		return nil, fmt.Errorf("encode progress of change %d of plan: %w", c.Index, err)
	}
	return encoded, nil
}

// decodeChange decodes the row of a change.
func decodeChange(row Entry) (*Change, error) {
	c := &Change{revision: row.Revision}
	planned, moved, _ := bytes.Cut(row.Value, []byte("\n"))
	if err := unmarshal(planned, c); err != nil {
		return nil, fmt.Errorf("decode change of plan: %w", err)
	}
	c.planned = maphash.Bytes(planHash, planned)
	return c, c.decodeProgress(moved)
}

func (c *Change) decodeProgress(data []byte) error {
	var p progress
	if err := unmarshal(data, &p); err != nil {
		return fmt.Errorf("decode progress of change %d of plan: %w", c.Index, err)
	}
	c.setProgress(p)
	return nil
}

// decodeChanges decodes the rows of changes in parallel, with their progress rows. Both are sorted by key.
func decodeChanges(rows, moved []Entry) ([]*Change, error) {
	out := make([]*Change, len(rows))
	size := max(minDecoded, (len(rows)+runtime.GOMAXPROCS(0)-1)/runtime.GOMAXPROCS(0))
	group := bug.NewGroup()
	for from := 0; from < len(rows); from += size {
		group.Go(func() (err error) {
			for i := from; i < min(from+size, len(rows)) && err == nil; i++ {
				out[i], err = decodeChange(rows[i])
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for _, row := range moved {
		at, found := slices.BinarySearchFunc(out, indexOf(row.Key),
			func(c *Change, i int32) int { return cmp.Compare(c.Index, i) })
		if !found {
			continue
		}
		if err := out[at].decodeProgress(row.Value); err != nil {
			return nil, err
		}
		out[at].progressRevision = row.Revision
	}
	return out, nil
}

func planPrefix(plan types.UID) string { return "plans/" + string(plan) + "/" }

func changeKey(plan types.UID, index int32) string {
	return fmt.Sprintf("%s%08d", planPrefix(plan), index)
}

func progressPrefix(plan types.UID) string { return "progress/" + string(plan) + "/" }

func progressKey(plan types.UID, index int32) string {
	return fmt.Sprintf("%s%08d", progressPrefix(plan), index)
}

// indexOf returns the index in the key of a change or of its progress; -1 for another key.
func indexOf(key string) int32 {
	i, err := strconv.ParseInt(key[strings.LastIndexByte(key, '/')+1:], 10, 32)
	if err != nil {
		return -1
	}
	return int32(i)
}

// Change returns one change of a plan. It returns ErrNotFound if there is none.
func (l *Ledger) Change(ctx context.Context, plan types.UID, index int32) (*Change, error) {
	page, err := l.ChangesPage(ctx, plan, index, 1)
	if err != nil {
		return nil, err
	}
	return page[0], nil
}

// ChangesPage returns up to n changes of a plan in order, beginning with the index from, which must exist: otherwise it
// returns ErrNotFound.
func (l *Ledger) ChangesPage(ctx context.Context, plan types.UID, from int32, n int) ([]*Change, error) {
	page, _, err := l.changesPage(ctx, plan, from, n)
	if err == nil && (len(page) == 0 || page[0].Index != from) {
		err = ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read change %d of plan: %w", from, err)
	}
	return page, nil
}

// changesPage returns up to n changes of a plan in order, beginning with the index from. It also returns whether more
// may follow.
func (l *Ledger) changesPage(ctx context.Context, plan types.UID, from int32,
	n int) (page []*Change, more bool, err error) {
	rows, err := l.rowsFrom(ctx, planPrefix(plan), from, n)
	if err != nil || len(rows) == 0 {
		return nil, false, err
	}
	moved, err := l.rowsFrom(ctx, progressPrefix(plan), indexOf(rows[0].Key), len(rows))
	if err != nil {
		return nil, false, err
	}
	page, err = decodeChanges(rows, moved)
	return page, len(rows) == n, err
}

// rowsFrom returns up to n rows with a prefix, beginning with an index.
func (l *Ledger) rowsFrom(ctx context.Context, prefix string, from int32, n int) ([]Entry, error) {
	after := ""
	if from > 0 {
		after = fmt.Sprintf("%s%08d/\xff", prefix, from-1) // this sorts after all rows of the change
	}
	return l.kv.List(ctx, prefix, after, n)
}

// SaveChange writes a change. A change that was planned again replaces the one stored under its index.
func (l *Ledger) SaveChange(ctx context.Context, plan types.UID, c *Change) error {
	e, err := encodeChange(c)
	if err != nil {
		return err
	}
	return l.putChange(ctx, plan, c, e)
}

// SaveChanges is SaveChange for many changes. It writes them in few transactions.
func (l *Ledger) SaveChanges(ctx context.Context, plan types.UID, changes []*Change) error {
	for len(changes) > 0 {
		var encoded []encodedChange
		for size := 0; len(encoded) < min(len(changes), maxBatchChanges) && size < maxBatchBytes; {
			e, err := encodeChange(changes[len(encoded)])
			if err != nil {
				return err
			}
			encoded, size = append(encoded, e), size+e.size()
		}
		if err := l.putChanges(ctx, plan, changes[:len(encoded)], encoded); err != nil {
			return err
		}
		changes = changes[len(encoded):]
	}
	return nil
}

// AddChanges writes new changes in one transaction. It returns ErrConflict, and writes nothing, if a change with one of
// their indexes exists.
func (l *Ledger) AddChanges(ctx context.Context, plan types.UID, changes []*Change) error {
	var writes []Write
	var encoded []encodedChange
	for _, c := range changes {
		e, err := encodeChange(c)
		if err != nil {
			return err
		}
		encoded, writes = append(encoded, e), append(writes, c.writes(plan, e)...)
	}
	revisions, err := l.kv.Batch(ctx, writes)
	if err != nil {
		return fmt.Errorf("add changes to plan: %w", err)
	}
	for i, c := range changes {
		c.written(revisions[2*i:2*i+2], encoded[i])
	}
	return nil
}

// putChanges writes changes in one transaction, or each on its own if one conflicts with what an earlier attempt
// stored.
func (l *Ledger) putChanges(ctx context.Context, plan types.UID, changes []*Change, encoded []encodedChange) error {
	var writes []Write
	for i, c := range changes {
		writes = append(writes, c.writes(plan, encoded[i])...)
	}
	revisions, err := l.kv.Batch(ctx, writes)
	if errors.Is(err, ErrConflict) {
		for i, c := range changes {
			if err := l.putChange(ctx, plan, c, encoded[i]); err != nil {
				return err
			}
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("save changes of plan: %w", err)
	}
	for i, c := range changes {
		c.written(revisions[2*i:2*i+2], encoded[i])
	}
	return nil
}

// writes returns the two writes of a change: they either write both parts to one row, or the progress to the other one.
func (c *Change) writes(plan types.UID, e encodedChange) []Write {
	key := changeKey(plan, c.Index)
	if c.revision != 0 && c.planned == maphash.Bytes(planHash, e.planned) {
		return []Write{{Op: OpCheck, Key: key, Revision: c.revision},
			{Key: progressKey(plan, c.Index), Value: e.progress, Revision: c.progressRevision}}
	}
	both := slices.Concat(e.planned, []byte("\n"), e.progress)
	return []Write{{Key: key, Value: both, Revision: c.revision},
		{Op: OpDelete, Key: progressKey(plan, c.Index), Revision: c.progressRevision}}
}

// written notes the revisions of the two writes.
func (c *Change) written(revisions []int64, e encodedChange) {
	if c.progressRevision = revisions[1]; revisions[0] != 0 {
		c.revision, c.planned = revisions[0], maphash.Bytes(planHash, e.planned)
	}
}

func (l *Ledger) putChange(ctx context.Context, plan types.UID, c *Change, e encodedChange) error {
	answers := l.answersWrites(plan, c)
	revisions, err := l.kv.Batch(ctx, append(c.writes(plan, e), answers...))
	if errors.Is(err, ErrConflict) && c.revision == 0 {
		// An earlier attempt of the same activity stored it.
		if stored, gerr := l.Change(ctx, plan, c.Index); gerr == nil {
			c.revision, c.progressRevision, c.planned = stored.revision, stored.progressRevision, 0
			revisions, err = l.kv.Batch(ctx, append(c.writes(plan, e), answers...))
		}
	}
	if err != nil {
		return fmt.Errorf("save change %d of plan: %w", c.Index, err)
	}
	c.written(revisions[:2], e)
	return nil
}

// SameWrite reports whether two changes are the same one as the same writes left it.
func (c *Change) SameWrite(other *Change) bool {
	return c.Index == other.Index && c.revision == other.revision && c.progressRevision == other.progressRevision
}

// Changes returns the changes of a plan in order, beginning with the index from.
func (l *Ledger) Changes(ctx context.Context, plan types.UID, from int32) iter.Seq2[*Change, error] {
	return func(yield func(*Change, error) bool) {
		for {
			page, more, err := l.changesPage(ctx, plan, from, pageSize)
			if err != nil {
				yield(nil, fmt.Errorf("list changes of plan: %w", err))
				return
			}
			for _, c := range page {
				if !yield(c, nil) {
					return
				}
			}
			if !more {
				return
			}
			from = page[len(page)-1].Index + 1
		}
	}
}

// DropPlan deletes the changes of a plan, with their briefs and answers.
func (l *Ledger) DropPlan(ctx context.Context, plan types.UID) error {
	// Plans looks for the last
	for _, prefix := range []string{answersPrefix(plan), briefPrefix(plan), progressPrefix(plan), planPrefix(plan)} {
		if err := l.kv.DeletePrefix(ctx, prefix); err != nil {
			return fmt.Errorf("remove changes of plan: %w", err)
		}
	}
	return nil
}

// Plans returns the UIDs of the plans that have changes or documents. It reads the store once per plan for each of the
// two. It returns a plan with both twice.
func (l *Ledger) Plans(ctx context.Context) iter.Seq2[types.UID, error] {
	return func(yield func(types.UID, error) bool) {
		for _, prefix := range []string{planPrefix(""), documentPrefix("")} {
			prefix = strings.TrimSuffix(prefix, "/")
			for after := ""; ; {
				page, err := l.kv.List(ctx, prefix, after, 1)
				if err != nil {
					yield("", fmt.Errorf("list plans: %w", err))
					return
				}
				if len(page) == 0 {
					break
				}
				uid, _, _ := strings.Cut(strings.TrimPrefix(page[0].Key, prefix), "/")
				if !yield(types.UID(uid), nil) {
					return
				}
				after = prefix + uid + "/\xff" // this sorts after all keys of the plan
			}
		}
	}
}
