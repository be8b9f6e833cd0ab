package session

import (
	"context"
	"log/slog"
	"time"

	"github.com/hykube/hykube/internal/ledger"
)

// The times between two requests for a part of a limit: while calls wait, while none waits, and after a failed request.
const (
	hungryEvery = 100 * time.Millisecond
	shareEvery  = 500 * time.Millisecond
	failedEvery = time.Second
)

// shareTimeout is the maximum time of a request for a part of a limit.
const shareTimeout = 10 * time.Second

// consumer uses the part of this process in a limit.
type consumer interface {
	// settle lets the consumer use held units, and takes back those beyond fair that it does not use. It returns what
	// it keeps and what it needs.
	settle(held, fair int64) (kept, needed int64)
	// rest ends the use of the limit. It returns false if a call waits.
	rest() bool
}

// share asks for the part of this process in a limit that all processes share. A process has a part only while its
// calls need one, so that those of other processes may use the whole limit.
type share struct {
	processes ledger.Processes
	logger    *slog.Logger
	limit     string
	total     int64
	// changed has a value if the consumer needs more than before, or can give back.
	changed chan struct{}
}

// notify makes run ask soon.
func (s *share) notify() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// run asks for what the consumer needs, until it has needed nothing for some time.
func (s *share) run(of consumer) {
	var part ledger.Share
	var before int64
	for asked := false; ; asked = true {
		kept, needed := of.settle(part.Held, part.Fair)
		if asked && kept == part.Held {
			s.pause(part, needed)
			kept, needed = of.settle(part.Held, part.Fair)
		}
		want := max(needed, before)
		before = needed
		if asked && want == 0 && kept == 0 && part == (ledger.Share{}) && of.rest() {
			return
		}
		next, err := s.ask(ledger.Share{Want: want, Held: kept})
		if err != nil {
			s.logger.Warn("ask for a share of a limit", "limit", s.limit, "error", err)
			next = ledger.Share{Want: part.Want, Held: kept, Fair: kept}
			time.Sleep(failedEvery)
		}
		part = next
	}
}

func (s *share) ask(own ledger.Share) (ledger.Share, error) {
	ctx, cancel := context.WithTimeout(context.Background(), shareTimeout)
	defer cancel()
	return s.processes.Share(ctx, s.limit, s.total, own)
}

// pause waits for the next request. A change of the need matters at once only if this process has all that it asked
// for, or holds more than its fair part.
func (s *share) pause(part ledger.Share, needed int64) {
	every, changed := shareEvery, s.changed
	if needed > part.Held {
		every = hungryEvery
	}
	if part.Fair < part.Want && part.Held <= part.Fair {
		changed = nil
	}
	select {
	case <-changed:
	case <-time.After(every):
	}
}
