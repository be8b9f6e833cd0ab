package ledger

import (
	"fmt"
	"slices"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
)

// TestFormerProgressRows reads changes whose progress an earlier version wrote next to them, in pages that end between the
// two, and applies them further.
func TestFormerProgressRows(t *testing.T) {
	for _, n := range []int{1, 2, 3, pageSize - 1, pageSize, pageSize + 1} {
		for first := range 3 {
			l := newLedger()
			for i := range int32(n) {
				c := &Change{}
				c.Index, c.State = i, v1alpha1.ChangePending
				if err := l.SaveChange(t.Context(), "p", c); err != nil {
					t.Fatal(err)
				}
				if int(i)%3 != first {
					continue
				}
				if _, err := l.kv.Put(t.Context(), changeKey("p", i)+formerProgress, []byte(`{"state":"Running"}`), 0); err != nil {
					t.Fatal(err)
				}
			}
			check := func(want func(i int32) v1alpha1.ChangeState) {
				t.Helper()
				next := int32(0)
				for c, err := range l.Changes(t.Context(), "p", 0) {
					if err != nil || c.Index != next || c.State != want(next) {
						t.Fatalf("%d changes: change %d is %d %s, %v", n, next, c.Index, c.State, err)
					}
					if alone, err := l.Change(t.Context(), "p", next); err != nil || alone.State != c.State {
						t.Fatalf("%d changes: change %d alone is %+v, %v", n, next, alone, err)
					}
					next++
				}
				if int(next) != n {
					t.Fatalf("%d of %d changes", next, n)
				}
			}
			check(func(i int32) v1alpha1.ChangeState {
				if int(i)%3 == first {
					return v1alpha1.ChangeRunning
				}
				return v1alpha1.ChangePending
			})
			for i := range int32(min(n, 10)) {
				c, err := l.Change(t.Context(), "p", i)
				if err != nil {
					t.Fatal(err)
				}
				c.State = v1alpha1.ChangeDone
				if err := l.SaveChange(t.Context(), "p", c); err != nil {
					t.Fatal(err)
				}
			}
			check(func(i int32) v1alpha1.ChangeState {
				switch {
				case i < 10:
					return v1alpha1.ChangeDone
				case int(i)%3 == first:
					return v1alpha1.ChangeRunning
				}
				return v1alpha1.ChangePending
			})
		}
	}
}

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
	if err := l.replace(ctx, briefKey("p", briefEnd), []byte("sha256:a")); err != nil { // as an earlier version wrote it
		t.Fatal(err)
	}
	if end, pages := read(); end != (BriefsEnd{Digest: "sha256:a"}) || !slices.Equal(pages, want) {
		t.Errorf("got %v %v, want %v", end, pages, want)
	}
	if err := l.DropPlan(ctx, "p"); err != nil {
		t.Fatal(err)
	}
	if end, pages := read(); end != none || len(pages) > 0 {
		t.Errorf("after the plan was removed: %v %v", end, pages)
	}
}
