package auditlog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	k8saudit "k8s.io/apiserver/pkg/audit"

	"github.com/hykube/hykube/internal/ledger/ledgertest"
)

// testLog is the directory and the store of a log.
type testLog struct {
	*testing.T
	cfg Config
}

func newTestLog(t *testing.T) *testLog {
	dir := t.TempDir()
	return &testLog{t, Config{
		Path: filepath.Join(dir, "audit", "audit.log"), KeyFile: filepath.Join(dir, "audit.key"),
		Heads: &Heads{KV: ledgertest.New()}, Logger: slog.New(slog.DiscardHandler),
	}}
}

// open opens the log.
func (w *testLog) open() *Log {
	w.Helper()
	l, err := Open(context.Background(), w.cfg)
	if err != nil {
		w.Fatal(err)
	}
	return l
}

// run opens the log, writes n events and closes it.
func (w *testLog) run(n int) {
	w.Helper()
	l := w.open()
	w.write(l, n)
	if err := l.Close(); err != nil {
		w.Fatal(err)
	}
}

// crash opens the log, writes n events, and does not close the log.
func (w *testLog) crash(n int) {
	w.Helper()
	heads := w.cfg.Heads
	w.cfg.Heads = &Heads{KV: ledgertest.New()}
	head, err := heads.Load(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	if err := w.cfg.Heads.Save(w.Context(), head); err != nil {
		w.Fatal(err)
	}
	w.run(n) // its head goes to another store
	w.cfg.Heads = heads
}

func (w *testLog) write(l *Log, n int) {
	w.Helper()
	for i := range n {
		ev := newEvent("create", fmt.Sprintf("/apis/%d", i))
		ev.Annotations = map[string]string{"authorization.k8s.io/decision": "allow"}
		if i%2 == 0 {
			ev.Annotations = nil
		}
		line, err := runtime.Encode(encoder, ev)
		if err != nil {
			w.Fatal(err)
		}
		if _, err := l.Write(line); err != nil {
			w.Fatal(err)
		}
	}
}

// lines returns the lines of the current file, without newlines.
func (w *testLog) lines() []string {
	w.Helper()
	data, err := os.ReadFile(w.cfg.Path)
	if err != nil {
		w.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
}

func (w *testLog) replace(text string) {
	w.Helper()
	if err := os.WriteFile(w.cfg.Path, []byte(text), 0o600); err != nil {
		w.Fatal(err)
	}
}

// verify returns the problems and notes as LINE: TEXT.
func (w *testLog) verify() (problems, notes []string) {
	w.Helper()
	key, err := ReadKey(w.cfg.KeyFile)
	if err != nil {
		w.Fatal(err)
	}
	head, err := w.cfg.Heads.Load(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	r, err := Verify(w.cfg.Path, key, &head)
	if err != nil {
		w.Fatal(err)
	}
	text := func(all []Finding) (out []string) {
		for _, f := range all {
			out = append(out, fmt.Sprintf("%s:%d: %s", filepath.Base(f.File), f.Line, f.Text))
		}
		return out
	}
	return text(r.Problems), text(r.Notes)
}

func (w *testLog) want(problems ...string) {
	w.Helper()
	got, _ := w.verify()
	if diff := cmp.Diff(problems, got); diff != "" {
		w.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestEveryRecordIsAnEventOfKubernetes(t *testing.T) {
	w := newTestLog(t)
	w.run(3)
	for _, line := range w.lines() {
		obj, _, err := k8saudit.Codecs.UniversalDecoder().Decode([]byte(line), nil, nil)
		if err != nil {
			t.Fatalf("decode %s: %v", line, err)
		}
		if _, ok := obj.(*auditinternal.Event); !ok {
			t.Errorf("%s is a %T", line, obj)
		}
	}
	info, err := os.Stat(w.cfg.Path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the log has the mode %v, %v", info.Mode(), err)
	}
}

func TestChainContinuesAfterARestart(t *testing.T) {
	w := newTestLog(t)
	w.run(3)
	w.run(2)
	w.crash(2)
	w.run(1)
	w.want()
	if n := len(w.lines()); n != 12 {
		t.Errorf("the log has %d lines, want 8 events and 4 starts", n)
	}
}

// Each case edits a log with the records 1 to 6, one a line.
func TestVerifyFindsTampering(t *testing.T) {
	const changed = "the record was changed, or the server did not write it"
	for name, test := range map[string]struct {
		edit func([]string) []string
		want []string
	}{
		"a changed word": {func(l []string) []string { l[2] = strings.Replace(l[2], "create", "update", 1); return l }, []string{"audit.log:3: " + changed}},
		"a changed first record": {func(l []string) []string { l[0] = strings.Replace(l[0], "start", "other", 1); return l },
			[]string{"audit.log:1: " + changed, "audit.log:2: record 1 is missing before this line, and the server did not remove such records"}},
		"two changed records": {func(l []string) []string { l[2], l[3] = l[2]+" ", "garbage"; return l }, []string{"audit.log:3: " + changed, "audit.log:4: " + changed}},
		"a removed record":    {func(l []string) []string { return slices.Delete(l, 2, 3) }, []string{"audit.log:3: record 3 is missing before this line"}},
		"removed records":     {func(l []string) []string { return slices.Delete(l, 1, 4) }, []string{"audit.log:2: records 2 to 4 are missing before this line"}},
		"two swapped records": {func(l []string) []string { l[2], l[3] = l[3], l[2]; return l },
			[]string{"audit.log:3: record 3 is missing before this line", "audit.log:4: record 3 is out of order, or a copy: it follows record 4"}},
		"a copied record":  {func(l []string) []string { return slices.Insert(l, 4, l[1]) }, []string{"audit.log:5: record 2 is out of order, or a copy: it follows record 4"}},
		"an inserted line": {func(l []string) []string { return slices.Insert(l, 4, "{}") }, []string{"audit.log:5: " + changed, "audit.log:6: a line before this one was inserted"}},
		"a cut tail":       {func(l []string) []string { return l[:4] }, []string{"audit.log:0: records 5 to 6 are missing at the end"}},
		"a removed head":   {func(l []string) []string { return l[2:] }, []string{"audit.log:1: records 1 to 2 are missing before this line, and the server did not remove such records"}},
		"a code of another key": {func(l []string) []string {
			line, _ := seal([]byte("another"), []byte(l[5][:strings.Index(l[5], `,"annotations"`)]+"}"), link{Sequence: 5})
			l[5] = strings.TrimSpace(string(line))
			return l
		}, []string{"audit.log:6: " + changed}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTestLog(t)
			w.run(5)
			w.replace(strings.Join(test.edit(w.lines()), "\n") + "\n")
			w.want(test.want...)
		})
	}
}

// A server that starts on a log with a cut tail must not make the log look complete.
func TestCutTailStaysVisibleAfterARestart(t *testing.T) {
	w := newTestLog(t)
	w.run(5)
	w.replace(strings.Join(w.lines()[:4], "\n") + "\n")
	w.run(2)
	w.want("audit.log:5: records 5 to 6 are missing before this line")
}

func TestRemovedLogStaysVisibleAfterARestart(t *testing.T) {
	w := newTestLog(t)
	w.run(5)
	if err := os.Remove(w.cfg.Path); err != nil {
		t.Fatal(err)
	}
	w.run(1)
	w.want("audit.log:1: records 1 to 6 are missing before this line, and the server did not remove such records")
}

func TestInterruptedWriteIsNoTampering(t *testing.T) {
	w := newTestLog(t)
	w.run(2)
	w.crash(2)
	all := w.lines()
	torn := all[len(all)-1][:100]
	w.replace(strings.Join(all[:len(all)-1], "\n") + "\n" + torn)
	problems, notes := w.verify()
	if len(problems) != 0 || len(notes) != 1 || !strings.Contains(notes[0], "incomplete") {
		t.Errorf("before the restart: %q, %q", problems, notes)
	}
	w.run(1)
	problems, notes = w.verify()
	if len(problems) != 0 || len(notes) != 1 || !strings.Contains(notes[0], torn[:50]) {
		t.Errorf("after the restart: %q, %q", problems, notes)
	}
	for _, line := range w.lines() {
		if !json.Valid([]byte(line)) {
			t.Errorf("the log has the line %s", line)
		}
	}
}

func TestRotation(t *testing.T) {
	w := newTestLog(t)
	w.cfg.MaxBytes, w.cfg.MaxFiles = 4<<10, 3
	for range 3 {
		w.run(20)
	}
	all, err := files(w.cfg.Path)
	if err != nil || len(all) != 4 {
		t.Fatalf("files: %q, %v", all, err)
	}
	for _, path := range all {
		if info, err := os.Stat(path); err != nil || info.Size() > w.cfg.MaxBytes || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
	w.want()

	second, ok := firstOf(w.cfg.Path, all[1])
	if !ok {
		t.Fatal(all)
	}
	first, _ := firstOf(w.cfg.Path, all[0])
	if err := os.Remove(all[0]); err != nil {
		t.Fatal(err)
	}
	w.want(fmt.Sprintf("%s:1: %s missing before this line, and the server did not remove such records", filepath.Base(all[1]), span(first, second-1)))
}

func TestRemovedFileInTheMiddle(t *testing.T) {
	w := newTestLog(t)
	w.cfg.MaxBytes = 4 << 10
	w.run(30)
	all, err := files(w.cfg.Path)
	if err != nil || len(all) < 4 {
		t.Fatalf("files: %q, %v", all, err)
	}
	first, _ := firstOf(w.cfg.Path, all[1])
	next, _ := firstOf(w.cfg.Path, all[2])
	if err := os.Remove(all[1]); err != nil {
		t.Fatal(err)
	}
	w.want(fmt.Sprintf("%s:1: %s missing before this line", filepath.Base(all[2]), span(first, next-1)))
}

// An older copy of the log has valid codes, and so do the records that a server writes after it.
func TestOlderCopyIsFound(t *testing.T) {
	w := newTestLog(t)
	w.run(3)
	old := w.lines()
	w.run(3)
	w.replace(strings.Join(old, "\n") + "\n")
	w.want("audit.log:0: records 5 to 8 are missing at the end")
}

func TestFailedWritesAreCountedAndLeaveNoPart(t *testing.T) {
	w := newTestLog(t)
	l := w.open()
	w.write(l, 1)
	good := l.file
	broken, err := os.Open(w.cfg.Path) // read-only
	if err != nil {
		t.Fatal(err)
	}
	defer broken.Close()
	l.file = broken
	for range 3 {
		if _, err := l.Write([]byte(`{"stageTimestamp":"2026-01-01T00:00:00Z"}`)); err == nil {
			t.Fatal("no error")
		}
	}
	if err := l.Check(); err == nil || !strings.Contains(err.Error(), "3 events are lost") {
		t.Errorf("check: %v", err)
	}
	l.file = good
	if err := l.Check(); err != nil {
		t.Errorf("check: %v", err)
	}
	w.write(l, 1)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	problems, notes := w.verify()
	if len(problems) != 0 || len(notes) != 1 || !strings.Contains(notes[0], "3 events before this line could not be written") {
		t.Errorf("%q, %q", problems, notes)
	}
}

func TestKeyThatIsGone(t *testing.T) {
	w := newTestLog(t)
	w.run(1)
	if err := os.Remove(w.cfg.KeyFile); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), w.cfg); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestIdleLogStoresNoHead(t *testing.T) {
	w := newTestLog(t)
	l := w.open()
	l.saveHead()
	_, before, err := w.cfg.Heads.load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l.saveHead()
	if _, after, err := w.cfg.Heads.load(t.Context()); err != nil || after != before {
		t.Errorf("the head was stored again: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestSealKeepsTheEvent(t *testing.T) {
	for _, event := range []string{`{"stageTimestamp":"x"}`, `{"stageTimestamp":"x","annotations":{"a":"b"}}`} {
		line, _ := seal([]byte("key"), []byte(event+"\n"), link{})
		var got struct {
			StageTimestamp string
			Annotations    map[string]string
		}
		if err := json.Unmarshal(line, &got); err != nil || got.StageTimestamp != "x" || bytes.Count(line, []byte("\n")) != 1 {
			t.Errorf("%s: %v", line, err)
		}
		if strings.Contains(event, `"a"`) && got.Annotations["a"] != "b" {
			t.Errorf("%s lost an annotation", line)
		}
	}
}
