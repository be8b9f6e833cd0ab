package ledger

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/hykube/hykube/api/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// This file stores the briefs of the changes of a plan, in pages. A reader of the briefs does not decode the changes, whose
// values are most of a plan. Publishing a plan writes the pages, and then the digest of the plan.

const (
	// briefPages is the number of pages that Briefs reads at once.
	briefPages = 8
	// briefDigest is the number of the row with the digest, which sorts after all pages.
	briefDigest = 99_999_999
)

func briefPrefix(plan types.UID) string { return "briefs/" + string(plan) + "/" }

// SaveBriefs writes a page of briefs as JSON. With the last page, it writes the digest of the plan; the others have none. It
// replaces what an earlier attempt wrote.
func (l *Ledger) SaveBriefs(ctx context.Context, plan types.UID, page int, briefs any, digest string) error {
	value, err := json.Marshal(briefs)
	if err != nil {
		return fmt.Errorf("encode briefs of plan: %w", err)
	}
	writes := []Write{{Key: fmt.Sprintf("%s%08d", briefPrefix(plan), page), Value: value}}
	if digest != "" {
		writes = append(writes, Write{Key: fmt.Sprintf("%s%08d", briefPrefix(plan), briefDigest), Value: []byte(digest)})
	}
	if _, err = l.kv.Batch(ctx, writes); errors.Is(err, ErrConflict) {
		err = nil
		for _, w := range writes {
			err = cmp.Or(err, l.replace(ctx, w.Key, w.Value))
		}
	}
	if err != nil {
		return fmt.Errorf("save briefs of plan: %w", err)
	}
	return nil
}

// Briefs calls add with the pages of the briefs of a plan, some at once, and returns the digest of the plan. The digest is
// empty if the plan has no briefs: an earlier version made it, or it is not published.
func (l *Ledger) Briefs(ctx context.Context, plan types.UID, add func(pages [][]byte) error) (digest string, err error) {
	last := fmt.Sprintf("%s%08d", briefPrefix(plan), briefDigest)
	for after := ""; digest == ""; {
		rows, err := l.kv.List(ctx, briefPrefix(plan), after, briefPages)
		if err != nil {
			return "", fmt.Errorf("read briefs of plan: %w", err)
		}
		if len(rows) == 0 {
			return "", nil
		}
		var pages [][]byte
		for _, row := range rows {
			if after = row.Key; after == last {
				digest = string(row.Value)
			} else {
				pages = append(pages, row.Value)
			}
		}
		if err = add(pages); err != nil {
			return "", fmt.Errorf("read briefs of plan: %w", err)
		}
	}
	return digest, nil
}

// ChangeProgress is the progress of a change that an apply wrote.
type ChangeProgress struct {
	Index       int32
	State       v1alpha1.ChangeState
	HalfDone    bool
	Left        v1alpha1.LeftInstance
	Held        bool
	StaleReason v1alpha1.StaleReason
	Message     string
	// Diagnosed is true if the change has diagnostics.
	Diagnosed             bool
	StartedAt, FinishedAt *metav1.Time
}

// Progress returns the progress of the changes of a plan for which an apply has written one, in order.
func (l *Ledger) Progress(ctx context.Context, plan types.UID) iter.Seq2[ChangeProgress, error] {
	return func(yield func(ChangeProgress, error) bool) {
		for row, err := range l.scan(ctx, progressPrefix(plan), "") {
			var p progress
			if err == nil {
				err = unmarshal(row.Value, &p)
			}
			if err != nil {
				yield(ChangeProgress{}, fmt.Errorf("read progress of plan: %w", err))
				return
			}
			moved := ChangeProgress{Index: indexOf(row.Key), State: p.State, HalfDone: p.HalfDone, Left: p.Left, Held: p.Held, StaleReason: p.StaleReason, Message: p.Message,
				Diagnosed: len(p.Diagnostics) > 0, StartedAt: p.StartedAt, FinishedAt: p.FinishedAt}
			if !yield(moved, nil) {
				return
			}
		}
	}
}
