package index

import (
	"testing"
	"time"
)

func TestWhenASnapshotIsSaved(t *testing.T) {
	base := saving{
		saved: saved{at: Position{100, 100, 100}, took: time.Second}, now: Position{100, 100, 100},
		age: 10 * time.Minute, entries: 100_000,
	}
	tests := map[string]struct {
		change func(*saving)
		want   savingAction
	}{
		"nothing changed":                  {func(*saving) {}, saveNothing},
		"nothing changed for a day":        {func(s *saving) { s.age = 24 * time.Hour }, saveNothing},
		"an empty index":                   {func(s *saving) { s.saved = saved{}; s.entries = 0 }, saveNothing},
		"an index that could not be read":  {func(s *saving) { s.saved = saved{}; s.now = Position{}; s.changed = 10 }, saveNothing},
		"the first snapshot":               {func(s *saving) { s.saved = saved{}; s.changed = 1 }, saveAll},
		"few changes":                      {func(s *saving) { s.changed = 9_999 }, saveNothing},
		"a tenth changed":                  {func(s *saving) { s.changed = 10_000 }, saveAll},
		"a tenth changed, a minute ago":    {func(s *saving) { s.changed = 10_000; s.age = time.Minute }, saveNothing},
		"half of a small estate":           {func(s *saving) { s.entries = 100; s.changed = 50 }, saveNothing},
		"a snapshot takes ten seconds":     {func(s *saving) { s.took = 10 * time.Second; s.changed = 10_000 }, saveNothing},
		"a snapshot took ten seconds":      {func(s *saving) { s.took = 10 * time.Second; s.changed = 10_000; s.age = 17 * time.Minute }, saveAll},
		"one change for long":              {func(s *saving) { s.changed = 1; s.age = 30 * time.Minute }, saveAll},
		"one change and many other writes": {func(s *saving) { s.changed = 1; s.now.Objects = 600 }, saveAll},
		"many other writes":                {func(s *saving) { s.now.Objects = 600 }, savePosition},
		"few other writes":                 {func(s *saving) { s.now.Objects = 599; s.age = 24 * time.Hour }, saveNothing},
		"another write to the ledger":      {func(s *saving) { s.now.Records = 101; s.age = 30 * time.Minute }, savePosition},
		"another key":                      {func(s *saving) { s.outdated = true }, saveAll},
		"the end":                          {func(s *saving) { s.ending = true; s.age = 0 }, saveNothing},
		"the end after a change":           {func(s *saving) { s.ending = true; s.age = 0; s.entries = 99_999; s.changed = 1 }, saveAll},
		"the end of a large estate":        {func(s *saving) { s.ending = true; s.age = 0; s.entries = 1_000_000; s.changed = 999 }, saveNothing},
		"the end after many changes":       {func(s *saving) { s.ending = true; s.age = 0; s.entries = 1_000_000; s.changed = 1000 }, saveAll},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := base
			if test.change(&s); s.decide() != test.want {
				t.Errorf("action %d, want %d", s.decide(), test.want)
			}
		})
	}
}
