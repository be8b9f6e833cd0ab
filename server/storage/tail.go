package storage

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/k3s-io/kine/pkg/logstructured/sqllog"
	"github.com/k3s-io/kine/pkg/server"
)

const (
	// tailBatch is the maximum number of rows that tail reads at once.
	tailBatch = 500
	// tailInterval is the time after which tail reads the rows of other servers.
	tailInterval = time.Second
	// minGapPause and maxGapPause limit the time between two looks at a gap.
	minGapPause = 2 * time.Millisecond
	maxGapPause = 200 * time.Millisecond
	// longGap is the age at which the server reports a gap.
	longGap = 2 * time.Second
)

// tail follows kine's table on a database with several writers. It delivers each row once, in the order of the
// revisions.
//
// PostgreSQL and MySQL number a row when a statement inserts it, and show the row when its transaction commits. So a
// missing revision is a row that is still to come, or a row that never comes: its transaction failed, the database
// crashed, or an administrator moved the sequence. Kine's own log inserts a row for each missing revision, one by one.
// After a second, it skips the missing revisions, also those of rows that are still to come.
//
// tail asks the database instead. A transaction that could fill a gap has begun before the row behind the gap became
// visible. When all these transactions have ended, and a later read does not show the missing row, there is none.
type tail struct {
	rows    server.Dialect
	writers writers
	log     *slog.Logger
	// wake has a capacity of one. It signals that there may be new rows.
	wake chan struct{}

	mu sync.Mutex
	// settled is the last revision without a missing row before it. No transaction can add a row up to it.
	settled int64
	// moved is closed when settled grows.
	moved chan struct{}
	subs  map[chan server.Events]struct{}
	// gap is the gap for which tail waits; the zero value means none.
	gap gap
}

// writers knows the transactions of a database.
type writers interface {
	// running returns the transactions that may have numbered a row of kine's table and have not ended, with a
	// description of each. A transaction that had numbered a row before the call, and is not among them, has ended.
	running(ctx context.Context) (map[string]string, error)
}

// gap is a sequence of missing revisions.
type gap struct {
	// until is a revision behind the gap. Its row was visible before tail asked for the transactions.
	until int64
	since time.Time
	// open are the transactions that may fill the gap; nil means that tail has not asked yet.
	open map[string]string
	// reported is true if the log has a line about the gap.
	reported bool
}

// narrow removes the transactions that have ended. It returns true if no transaction can fill the gap any more.
func (g *gap) narrow(running map[string]string) bool {
	if g.open == nil {
		g.open = running
	} else {
		maps.DeleteFunc(g.open, func(id, _ string) bool { _, ok := running[id]; return !ok })
	}
	return len(g.open) == 0
}

// reason says for what the watches wait.
func (g *gap) reason(now time.Time) string {
	return fmt.Sprintf("the watches have waited for %s for a transaction that may hold an earlier revision (%s)",
		now.Sub(g.since).Round(time.Second), strings.Join(slices.Sorted(maps.Values(g.open)), ", "))
}

// unbroken returns the number of rows after a revision that tail can deliver: those up to the first gap. Rows that are
// missing up to the revision proven do not exist.
func unbroken(after, proven int64, events server.Events) int {
	for i, e := range events {
		if e.KV.ModRevision != after+1 && e.KV.ModRevision > proven+1 {
			return i
		}
		after = e.KV.ModRevision
	}
	return len(events)
}

func newTail(rows server.Dialect, w writers, log *slog.Logger) *tail {
	return &tail{rows: rows, writers: w, log: log, wake: make(chan struct{}, 1), moved: make(chan struct{}),
		subs: map[chan server.Events]struct{}{}}
}

// begin waits until no running transaction can add a row up to the last revision, and starts there.
func (t *tail) begin(ctx context.Context) error {
	last, err := t.rows.CurrentRevision(ctx)
	if err != nil {
		return fmt.Errorf("read current revision: %w", err)
	}
	first := gap{until: last, since: time.Now()}
	for wait := minGapPause; ; wait = min(2*wait, maxGapPause) {
		running, err := t.writers.running(ctx)
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("read the transactions of the database: %w", err)
		}
		if err == nil && first.narrow(running) {
			t.publish(last, nil)
			return nil
		}
		if pause(ctx, wait) != nil {
			return errors.New(first.reason(time.Now()) + endIt)
		}
	}
}

// endIt says what to do about a transaction that holds the watches up.
const endIt = "; end that transaction or its connection in the database"

// run delivers rows until ctx ends.
func (t *tail) run(ctx context.Context) {
	defer t.end()
	failed := false
	for proven := t.at(); ctx.Err() == nil; {
		more, err := t.read(ctx, &proven)
		if err != nil && ctx.Err() == nil && !failed {
			t.log.Warn("the database does not answer, so watches get no events", "error", err)
		}
		failed = err != nil
		switch {
		case failed:
			_ = pause(ctx, followRetry)
		case !more:
			t.rest(ctx)
		}
	}
}

// read delivers the rows that are visible. more is true if the next read may show other rows at once. proven is the
// revision up to which missing rows do not exist.
func (t *tail) read(ctx context.Context, proven *int64) (more bool, err error) {
	at := t.at()
	compacted, events, err := readAfter(ctx, t.rows, "", "", at, tailBatch)
	if err != nil {
		return false, err
	}
	if len(events) > 0 && compacted > at {
		return true, t.restart(ctx, proven)
	}
	n := unbroken(at, *proven, events)
	if n > 0 {
		at = events[n-1].KV.ModRevision
		t.publish(at, events[:n])
	}
	if n == len(events) {
		t.setGap(gap{})
		return n == tailBatch, nil
	}
	return true, t.close(ctx, at, events[len(events)-1].KV.ModRevision, proven)
}

// restart continues behind rows that the database compacted before tail had read them. It ends the subscriptions, whose
// clients must list again.
func (t *tail) restart(ctx context.Context, proven *int64) error {
	t.end()
	err := t.begin(ctx)
	*proven = t.at()
	return err
}

// close works on the proof that no transaction fills the gap after a revision. last is the last visible revision.
func (t *tail) close(ctx context.Context, at, last int64, proven *int64) error {
	g := t.currentGap()
	if g.until <= at {
		t.setGap(gap{until: last, since: time.Now()})
		return pause(ctx, minGapPause) // most gaps are transactions that commit at any moment
	}
	began := time.Now()
	running, err := t.writers.running(ctx)
	if err != nil {
		return err
	}
	if g.narrow(running) {
		*proven = g.until
		if g.reported {
			t.log.Info("the watches go on: no running transaction can hold an earlier revision", "revision", g.until)
		}
		return nil
	}
	age := time.Since(g.since)
	if age > longGap && !g.reported {
		g.reported = true
		t.log.Warn(g.reason(time.Now())+endIt, "after", at)
	}
	t.setGap(g)
	// MySQL makes other writers wait while it looks, so it looks seldom.
	return pause(ctx, max(min(age, maxGapPause), 4*time.Since(began)))
}

func (t *tail) currentGap() gap {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.gap
	g.open = maps.Clone(g.open)
	return g
}

func (t *tail) setGap(g gap) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.gap = g
}

// waits returns the reason for which the watches have waited for a while; nil if there is none.
func (t *tail) waits(now time.Time) error {
	if t == nil {
		return nil
	}
	if g := t.currentGap(); g.until != 0 && len(g.open) > 0 && now.Sub(g.since) > longGap {
		return errors.New(g.reason(now) + endIt)
	}
	return nil
}

// rest waits until there may be new rows.
func (t *tail) rest(ctx context.Context) {
	timer := time.NewTimer(tailInterval)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-t.wake:
	case <-timer.C:
	}
}

// saw tells tail that a revision exists.
func (t *tail) saw(revision int64) {
	if revision <= t.at() {
		return
	}
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// at returns the last revision without a missing row before it.
func (t *tail) at() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.settled
}

// reach waits until no transaction can add a row up to a revision.
func (t *tail) reach(ctx context.Context, revision int64) error {
	for {
		t.mu.Lock()
		settled, moved := t.settled, t.moved
		t.mu.Unlock()
		if settled >= revision {
			return nil
		}
		t.saw(revision)
		select {
		case <-moved:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// publish notes that all rows up to a revision are known, and delivers the last of them. A subscriber that begins
// before receives them, and one that begins afterwards reads them from the table: see sharedLog.
func (t *tail) publish(settled int64, events server.Events) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.settled = max(t.settled, settled)
	close(t.moved)
	t.moved = make(chan struct{})
	if len(events) == 0 {
		return
	}
	for sub := range t.subs {
		select {
		case sub <- events:
		default: // the subscriber is too slow, and must subscribe again
			delete(t.subs, sub)
			close(sub)
		}
	}
}

// subscribe returns the events after the settled revision. The channel closes with ctx, or if its reader is too slow.
func (t *tail) subscribe(ctx context.Context) <-chan server.Events {
	sub := make(chan server.Events, 100)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.subs[sub] = struct{}{}
	context.AfterFunc(ctx, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if _, open := t.subs[sub]; open {
			delete(t.subs, sub)
			close(sub)
		}
	})
	return sub
}

// end ends all subscriptions.
func (t *tail) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for sub := range t.subs {
		close(sub)
	}
	clear(t.subs)
}

// sharedLog is kine's log on a database with several writers. Its watches follow a tail.
type sharedLog struct {
	*sqllog.SQLLog
	tail *tail
	done *sync.WaitGroup
}

// Start implements logstructured.Log.
func (l sharedLog) Start(ctx context.Context) error {
	if err := l.SQLLog.Start(ctx); err != nil {
		return err
	}
	starting, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if err := l.tail.begin(starting); err != nil {
		return err
	}
	l.done.Go(func() { l.tail.run(ctx) })
	return nil
}

// Append implements logstructured.Log.
func (l sharedLog) Append(ctx context.Context, event *server.Event) (int64, error) {
	revision, err := l.SQLLog.Append(ctx, event)
	l.tail.saw(revision)
	return revision, err
}

// List implements logstructured.Log.
func (l sharedLog) List(ctx context.Context, key, end string, limit, revision int64, deleted,
	keysOnly bool) (int64, server.Events, error) {
	at, events, err := l.SQLLog.List(ctx, key, end, limit, revision, deleted, keysOnly)
	l.tail.saw(at)
	return at, events, err
}

// Watch implements logstructured.Log.
func (l sharedLog) Watch(ctx context.Context, key, end string) <-chan server.Events {
	out := make(chan server.Events, 100)
	in := l.tail.subscribe(ctx)
	go func() {
		defer close(out)
		for events := range in {
			events = slices.DeleteFunc(slices.Clone(events), func(e *server.Event) bool { return !e.InRange(key, end) })
			if len(events) > 0 {
				out <- events
			}
		}
	}()
	return out
}

// After implements logstructured.Log. It returns the rows up to the settled revision: a watch receives the later ones
// from its subscription, in order.
func (l sharedLog) After(ctx context.Context, key, end string, revision, limit int64) (int64, server.Events, error) {
	settled := l.tail.at()
	compacted, events, err := readAfter(ctx, l.tail.rows, key, end, revision, limit)
	if err == nil && len(events) == 0 {
		compacted, err = l.CompactRevision(ctx)
	}
	switch {
	case err != nil:
		return 0, nil, err
	case revision > 0 && revision < compacted:
		return settled, nil, server.ErrCompacted
	}
	return settled, slices.DeleteFunc(events, func(e *server.Event) bool { return e.KV.ModRevision > settled }), nil
}

// WaitForSyncTo implements logstructured.Log.
func (l sharedLog) WaitForSyncTo(revision int64) { _ = l.tail.reach(context.Background(), revision) }

// readAfter returns the rows after a revision, and the last compacted revision. Without rows, it returns 0.
func readAfter(ctx context.Context, d server.Dialect, key, end string, revision,
	limit int64) (compacted int64, events server.Events, err error) {
	rows, err := d.After(ctx, key, end, revision, limit)
	if err != nil {
		return 0, nil, err
	}
	_, compacted, events, err = sqllog.RowsToEvents(rows, true, true)
	if err == nil {
		err = rows.Err() // kine takes a result that the database cut for a whole one
	}
	return compacted, events, err
}
