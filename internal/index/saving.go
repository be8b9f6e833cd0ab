package index

import (
	"context"
	"errors"
	"time"
)

// This file decides when the index saves a snapshot. A snapshot has all entries, so its cost is in proportion to the
// estate and not to the changes.

const (
	// saveInterval is the minimum time between two snapshots. saveShare is the same as a multiple of the time that the
	// last one took, so that snapshots take at most 1 % of a processor.
	saveInterval = 3 * time.Minute
	saveShare    = 100
	// manyChanges is the minimum number of changed entries for a snapshot, and one in changedShare of all entries is
	// another.
	manyChanges  = 1000
	changedShare = 10
	// behindObjects is the number of revisions after which the position of a snapshot is moved. The database removes
	// old values, but keeps those of the last 1000 revisions. It keeps the deletions of the ledger for an hour: see
	// savedAge.
	behindObjects = 500
	savedAge      = 30 * time.Minute
	// saveCheck is the time between two decisions, and lastSave limits the snapshot at the end of Run.
	saveCheck = 10 * time.Second
	lastSave  = 5 * time.Second
)

// saved describes a snapshot. The zero value means that there is none.
type saved struct {
	at   Position
	when time.Time
	// took is the time that it took.
	took time.Duration
}

// saving has the facts from which decide decides.
type saving struct {
	saved
	now Position
	age time.Duration
	// entries is the number of objects and instances, and changed that of the changes since the snapshot.
	entries, changed int
	// outdated is true if another key than the current one encrypts the snapshot.
	outdated bool
	// ending is true at the end of Run.
	ending bool
}

// savingAction is a decision.
type savingAction int

const (
	saveNothing savingAction = iota
	savePosition
	saveAll
)

func (s *saving) decide() savingAction {
	none := s.at == Position{}
	behind := s.now.Objects-s.at.Objects >= behindObjects ||
		s.age >= savedAge && (s.changed > 0 || s.now.Records != s.at.Records || s.now.Statuses != s.at.Statuses)
	many := none || s.changed >= max(manyChanges, s.entries/changedShare) ||
		s.ending && (s.changed >= manyChanges || s.entries < 100*manyChanges)
	switch {
	case s.now.Objects == 0 || none && s.changed == 0:
		return saveNothing // there is no entry
	case !s.ending && s.age < max(saveInterval, saveShare*s.took):
		return saveNothing
	case s.outdated || s.changed > 0 && (many || behind):
		return saveAll
	case behind:
		return savePosition
	}
	return saveNothing
}

// objectCount returns the number of objects and instances. It requires x.mu.
func (x *Index) objectCount() (n int) {
	for _, ns := range x.namespaces {
		n += ns.objects
	}
	return n
}

// keepSaved saves snapshots until ctx ends, and then the last one.
func (x *Index) keepSaved(ctx context.Context) {
	ticker := time.NewTicker(saveCheck)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			x.save(ctx, false)
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastSave)
			defer cancel()
			x.save(last, true)
			return
		}
	}
}

// save does what decide says: it saves a snapshot, only its position, or nothing. It collects the entries with the lock
// of the index, and writes them without it.
func (x *Index) save(ctx context.Context, ending bool) {
	if err := x.trySave(ctx, ending); err != nil && !errors.Is(err, context.Canceled) {
		x.log.Warn("cannot save a snapshot of the index; without one, a restart reads all objects and records", "error",
			err)
	}
}

func (x *Index) trySave(ctx context.Context, ending bool) error {
	x.saving.Lock()
	defer x.saving.Unlock()
	began, outdated := time.Now(), x.snapshots.Outdated(ctx)
	x.mu.Lock()
	s := saving{saved: x.saved, now: x.position(), age: began.Sub(x.saved.when), entries: x.objectCount(),
		changed: x.unsaved, outdated: outdated, ending: ending}
	action := s.decide()
	var m *image
	if action == saveAll {
		m, x.unsaved = x.image(), 0
	}
	x.mu.Unlock()
	var err error
	switch action {
	case saveNothing:
		return nil
	case savePosition:
		err = x.snapshots.Move(ctx, s.now)
	case saveAll:
		err = x.snapshots.Save(ctx, snapshotFormat, m.at, m.blocks)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if err != nil {
		x.saved.when = began // try again after the interval
		x.unsaved += s.changed
		return err
	}
	x.saved.at, x.saved.when = s.now, time.Now()
	if action == saveAll {
		x.saved.took = time.Since(began)
		x.log.Debug("saved a snapshot of the index", "entries", s.entries, "duration", x.saved.took)
	}
	return nil
}
