package ledger

import (
	"fmt"
	"slices"
	"testing"
)

// TestBriefs writes pages of briefs, some of them twice, and reads them with their end. Without the end, the pages do not count.
func TestBriefs(t *testing.T) {
	ctx, l := t.Context(), newLedger()
	read := func() (end BriefsEnd, pages []string) {
		t.Helper()
		found, err := l.Briefs(ctx, "p", func(e BriefsEnd) { end = e }, func(some [][]byte) error {
			for _, page := range some {
				pages = append(pages, string(page))
			}
			return nil
		})
		if err != nil || found != (end.Digest != "") {
			t.Fatalf("found %v: %v", found, err)
		}
		return end, pages
	}
	var want []string
	var none, all BriefsEnd = BriefsEnd{}, BriefsEnd{"sha256:a", 7}
	for attempt := range 2 {
		for page := range 2*briefPages + 1 {
			var end *BriefsEnd
			if page == 2*briefPages {
				if got, pages := read(); attempt == 0 && (got != none || len(pages) > 0) {
					t.Fatalf("got %v %v before the end is written", got, pages)
				}
				end = &all
			}
			if err := l.SaveBriefs(ctx, "p", page, page+attempt, end); err != nil {
				t.Fatal(err)
			}
			if attempt == 1 {
				want = append(want, fmt.Sprint(page+attempt))
			}
		}
	}
	if end, pages := read(); end != all || !slices.Equal(pages, want) {
		t.Errorf("got %v %v, want %v", end, pages, want)
	}
	if err := l.DropPlan(ctx, "p"); err != nil {
		t.Fatal(err)
	}
	if end, pages := read(); end != none || len(pages) > 0 {
		t.Errorf("after the plan was removed: %v %v", end, pages)
	}
}
