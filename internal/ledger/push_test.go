package ledger

import (
	"errors"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
)

func stagedRecord(uid, value string, revision int64) Staged {
	return Staged{Address: "a_a." + uid, Revision: revision, Record: &Instance{
		Object: v1alpha1.ObjectReference{Namespace: "ns", UID: types.UID(uid)}, Plan: "push",
		State: State{Type: "a_a", Attributes: []byte(`{"id":"` + value + `"}`)},
	}}
}

// TestAPushIsAllOrNothing commits a push in which another writer has changed one record meanwhile.
func TestAPushIsAllOrNothing(t *testing.T) {
	l, ctx := newLedger(), t.Context()
	begin := func(id string) *Push {
		t.Helper()
		old, err := l.Push(ctx, "ns")
		if err != nil {
			t.Fatal(err)
		}
		p, err := l.BeginPush(ctx, old, id, "alice")
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	commit := func(p *Push, serial int64) error {
		t.Helper()
		var all []*Staged
		for r, err := range l.StagedRecords(ctx, p) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, r)
		}
		known, err := l.Lineages(ctx, "ns")
		if err != nil {
			t.Fatal(err)
		}
		known.Note("", "lineage", serial, "1.11.0")
		return l.CommitPush(ctx, p, known, all)
	}
	p := begin("one")
	for page := range int32(3) {
		for range 2 { // a client may send a page again
			if err := l.AddPage(ctx, p, page, []Staged{stagedRecord(fmt.Sprintf("u%d", page), "first", 0)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if p.Pages != 3 || p.Entries != 3 {
		t.Errorf("%d pages with %d entries", p.Pages, p.Entries)
	}
	meanwhile := stagedRecord("u1", "by a plan", 0).Record
	if err := l.Save(ctx, meanwhile); err != nil {
		t.Fatal(err)
	}
	if err := commit(p, 1); !errors.Is(err, ErrConflict) {
		t.Fatalf("commit: %v", err)
	}
	for _, uid := range []types.UID{"u0", "u2"} {
		if rec, err := l.Instance(ctx, v1alpha1.ObjectReference{Namespace: "ns", UID: uid}); err != nil || rec.Revision() != 0 {
			t.Errorf("%s has a record: %v", uid, err)
		}
	}
	if known, err := l.Lineages(ctx, "ns"); err != nil || known.Last != "" {
		t.Errorf("the lineage was noted: %v, %v", known, err)
	}

	p = begin("two")
	if err := l.AddPage(ctx, p, 0, []Staged{stagedRecord("u0", "second", 0), stagedRecord("u1", "second", meanwhile.Revision())}); err != nil {
		t.Fatal(err)
	}
	if err := commit(p, 2); err != nil {
		t.Fatal(err)
	}
	for _, uid := range []types.UID{"u0", "u1"} {
		rec, err := l.Instance(ctx, v1alpha1.ObjectReference{Namespace: "ns", UID: uid})
		if err != nil || rec.ID() != "second" || rec.Version == "" {
			t.Errorf("%s has the ID %q and the version %q: %v", uid, rec.ID(), rec.Version, err)
		}
	}
	stored, err := l.Push(ctx, "ns")
	if err != nil || !stored.Committed || stored.ID != "two" {
		t.Errorf("push %+v, %v", stored, err)
	}
	if err := l.DropPush(ctx, stored); err != nil {
		t.Fatal(err)
	}
	if stored, err = l.Push(ctx, "ns"); err != nil || stored.ID != "" {
		t.Errorf("push %+v, %v", stored, err)
	}
	for r := range l.StagedRecords(ctx, stored) {
		t.Errorf("%s is still there", r.Address)
	}
}

// TestARequestOfAnOldPushIsRefused adds a page after another client has begun a push.
func TestARequestOfAnOldPushIsRefused(t *testing.T) {
	l, ctx := newLedger(), t.Context()
	old, err := l.Push(ctx, "ns")
	if err != nil {
		t.Fatal(err)
	}
	first, err := l.BeginPush(ctx, old, "one", "alice")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.AddPage(ctx, first, 0, nil); err != nil {
		t.Fatal(err)
	}
	stored, err := l.Push(ctx, "ns")
	if err != nil {
		t.Fatal(err)
	}
	second, err := l.BeginPush(ctx, stored, "two", "bob")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.AddPage(ctx, second, 0, nil); err != nil {
		t.Fatal(err)
	}
	if err := l.AddPage(ctx, first, 1, nil); !errors.Is(err, ErrConflict) {
		t.Errorf("the old push goes on: %v", err)
	}
}
