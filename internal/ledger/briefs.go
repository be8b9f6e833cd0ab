package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/hykube/hykube/api/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// This file stores the briefs of the changes of a plan, in pages. A reader of the briefs does not decode the changes,
// whose values are most of a plan. Publishing a plan writes the pages, and then their end.

const (
	// briefPages is the number of pages that Briefs reads at once.
	briefPages = 8
	// briefEnd is the number of the row with the end, which sorts after all pages.
	briefEnd = 99_999_999
)

func briefPrefix(plan types.UID) string { return "briefs/" + string(plan) + "/" }

func briefKey(plan types.UID, number int) string {
	return fmt.Sprintf("%s%08d", briefPrefix(plan), number)
}

// BriefsEnd ends the briefs of a plan. Its row is written with the last page.
type BriefsEnd struct {
	// Digest is the digest of the plan.
	Digest string
	// Changes is the number of the plan's changes.
	Changes int
}

// encode returns the row: the digest, and the number after a space.
func (e BriefsEnd) encode() []byte { return fmt.Appendf(nil, "%s %d", e.Digest, e.Changes) }

func decodeBriefsEnd(row []byte) (BriefsEnd, error) {
	digest, count, _ := strings.Cut(string(row), " ")
	changes, err := strconv.Atoi(count)
	return BriefsEnd{digest, changes}, err
}

// SaveBriefs writes a page of briefs as JSON, and after the last page also the end; it is nil for the others. It
// replaces what an earlier attempt wrote.
func (l *Ledger) SaveBriefs(ctx context.Context, plan types.UID, page int, briefs any, end *BriefsEnd) error {
	value, err := json.Marshal(briefs)
	if err != nil {
		return fmt.Errorf("encode briefs of plan: %w", err)
	}
	writes := []Write{{Key: briefKey(plan, page), Value: value}}
	if end != nil {
		writes = append(writes, Write{Key: briefKey(plan, briefEnd), Value: end.encode()})
	}
	if _, err = l.kv.Batch(ctx, writes); errors.Is(err, ErrConflict) {
		for _, w := range writes {
			if err = l.replace(ctx, w.Key, w.Value); err != nil {
				break
			}
		}
	}
	if err != nil {
		return fmt.Errorf("save briefs of plan: %w", err)
	}
	return nil
}

// Briefs calls begin with the end of the briefs of a plan, and then add with their pages, some at once. It calls
// neither, and returns false, if the plan has no briefs, because it is not published.
func (l *Ledger) Briefs(ctx context.Context, plan types.UID, begin func(BriefsEnd),
	add func(pages [][]byte) error) (bool, error) {
	last := briefKey(plan, briefEnd)
	row, _, err := l.kv.Get(ctx, last)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	var end BriefsEnd
	if err == nil {
		end, err = decodeBriefsEnd(row)
	}
	if err != nil {
		return false, fmt.Errorf("read briefs of plan: %w", err)
	}
	begin(end)
	for after := ""; after != last; {
		rows, err := l.kv.List(ctx, briefPrefix(plan), after, briefPages)
		if err == nil && len(rows) == 0 {
			err = ErrNotFound // the plan was deleted meanwhile
		}
		var pages [][]byte
		for _, row := range rows {
			if after = row.Key; after != last {
				pages = append(pages, row.Value)
			}
		}
		if err == nil {
			err = add(pages)
		}
		if err != nil {
			return false, fmt.Errorf("read briefs of plan: %w", err)
		}
	}
	return true, nil
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
			moved := ChangeProgress{Index: indexOf(row.Key), State: p.State, HalfDone: p.HalfDone, Left: p.Left,
				Held: p.Held, StaleReason: p.StaleReason, Message: p.Message,
				Diagnosed: len(p.Diagnostics) > 0, StartedAt: p.StartedAt, FinishedAt: p.FinishedAt}
			if !yield(moved, nil) {
				return
			}
		}
	}
}
