package ledger

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hykube/hykube/api/v1alpha1"
)

func TestDocuments(t *testing.T) {
	kv := &memory{entries: map[string]Entry{}}
	l := New(kv)
	save := func(chunk int32, objects ...string) {
		t.Helper()
		var docs []Document
		for _, o := range objects {
			docs = append(docs, Document{Object: json.RawMessage(o)})
		}
		if err := l.SaveDocuments(t.Context(), "p", chunk, docs); err != nil {
			t.Fatal(err)
		}
	}
	save(1, `{"n":3}`)
	save(0, `{"n":0}`)
	save(0, `{"n":1}`, `{"n":2}`) // sent again: the answer was lost
	var got []string
	for d, err := range l.Documents(t.Context(), "p") {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(d.Object))
	}
	if d := cmp.Diff([]string{`{"n":1}`, `{"n":2}`, `{"n":3}`}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if err := l.DropPlan(t.Context(), "p"); err != nil || len(kv.entries) != 2 {
		t.Errorf("the changes of a plan went with its documents: %d records, %v", len(kv.entries), err)
	}
	if err := l.DropDocuments(t.Context(), "p"); err != nil || len(kv.entries) != 0 {
		t.Errorf("%d records are left: %v", len(kv.entries), err)
	}
}

// A speculative plan writes its own changes, and drops all else.
func TestSpeculativeLedger(t *testing.T) {
	kv := &memory{entries: map[string]Entry{}}
	l := New(kv)
	rec := &Instance{Object: v1alpha1.ObjectReference{Namespace: "n", UID: "u"}, Provider: "sim"}
	if err := l.Save(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	before := kv.entries["instances/n/u"]
	l.Limit = 1000
	view := l.Speculative("p")
	large := &Change{Planned: make([]byte, 1000)}
	if err := view.SavePlanned(t.Context(), "p", large); !errors.As(err, new(*TooLargeError)) {
		t.Errorf("a change above the limit: %v", err)
	}
	rec.Provider = "other"
	if err := view.Save(t.Context(), rec); err != nil {
		t.Error(err)
	}
	if err := view.Save(t.Context(), &Instance{Object: v1alpha1.ObjectReference{Namespace: "n", UID: "new"}}); err != nil {
		t.Error(err)
	}
	if err := view.Forget(t.Context(), rec); err != nil {
		t.Error(err)
	}
	if d := cmp.Diff(map[string]Entry{"instances/n/u": before}, kv.entries); d != "" {
		t.Errorf("a record was written (-want +got):\n%s", d)
	}
	if err := view.SaveChange(t.Context(), "p", &Change{}); err != nil || len(kv.entries) != 2 {
		t.Errorf("its own change was not written: %v", err)
	}
	if err := view.SaveChange(t.Context(), "q", &Change{}); err != nil || len(kv.entries) != 2 {
		t.Errorf("the change of another plan was written: %v", err)
	}
}

func TestContentsKeyStays(t *testing.T) {
	l := New(&memory{entries: map[string]Entry{}})
	a, err := l.ContentsKey(t.Context())
	if err != nil || len(a) != 32 {
		t.Fatal(a, err)
	}
	if b, err := l.Speculative("p").ContentsKey(t.Context()); err != nil || !cmp.Equal(a, b) {
		t.Errorf("another key: %v", err)
	}
}
