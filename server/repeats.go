package server

import (
	"context"
	"log/slog"
	"regexp"
	"sync"
	"time"
)

const (
	// repeatsWindow is the time in which lines count as repeated, and mostRepeats how many of the same are written in it.
	repeatsWindow = time.Minute
	mostRepeats   = 10
	// maxRepeatKeys bounds the messages that are told apart.
	maxRepeatKeys = 500
)

// repeats bounds warnings and errors that libraries repeat, such as those about each request that a client left half sent. It writes the
// first ones of a minute, and at its end how many it left out.
type repeats struct {
	mu   sync.Mutex
	seen map[string]int
}

// repeating is a handler whose repeated lines a repeats bounds.
type repeating struct {
	slog.Handler
	repeats *repeats
}

// Handle implements slog.Handler.
func (h repeating) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelWarn || h.repeats.add(r, h.Handler) {
		return h.Handler.Handle(ctx, r)
	}
	return nil
}

// WithAttrs implements slog.Handler.
func (h repeating) WithAttrs(attrs []slog.Attr) slog.Handler {
	return repeating{h.Handler.WithAttrs(attrs), h.repeats}
}

// WithGroup implements slog.Handler.
func (h repeating) WithGroup(name string) slog.Handler {
	return repeating{h.Handler.WithGroup(name), h.repeats}
}

// add counts a line, and says whether it is to be written.
func (l *repeats) add(r slog.Record, to slog.Handler) bool {
	key := alike(r)
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.seen[key]; !known && len(l.seen) >= maxRepeatKeys {
		key = r.Message
	}
	if l.seen[key]++; l.seen[key] == 1 {
		time.AfterFunc(repeatsWindow, func() { l.end(key, r, to) })
	}
	return l.seen[key] <= mostRepeats
}

// end forgets a line that began a minute, and writes how often it was left out.
func (l *repeats) end(key string, first slog.Record, to slog.Handler) {
	l.mu.Lock()
	left := l.seen[key] - mostRepeats
	delete(l.seen, key)
	l.mu.Unlock()
	if left <= 0 {
		return
	}
	r := first.Clone()
	r.Time = time.Now()
	r.AddAttrs(slog.Int("leftOut", left), slog.Duration("within", repeatsWindow))
	_ = to.Handle(context.Background(), r) // a log that cannot be written has nowhere to say so
}

var numbers = regexp.MustCompile(`0x[0-9a-f]+|[0-9]+`)

// alike is what lines of the same kind have in common: the message and the error, without numbers, such as ports and pointers.
func alike(r slog.Record) string {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "err" {
			text += " " + a.Value.String()
		}
		return a.Key != "err"
	})
	return numbers.ReplaceAllString(text, "")
}
