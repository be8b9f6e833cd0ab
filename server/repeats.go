package server

import (
	"context"
	"log/slog"
	"regexp"
	"sync"
	"time"
)

const (
	// repeatsWindow is the time in which the log limits equal lines. mostRepeats is the maximum of equal lines in that
	// time.
	repeatsWindow = time.Minute
	mostRepeats   = 10
	// maxRepeatKeys bounds the number of different lines that the log counts. Further lines count as equal if their
	// messages are equal.
	maxRepeatKeys = 500
)

// repeats limits warnings and errors that libraries repeat, such as one for each request that a client sent
// incompletely. For each line, it lets the first mostRepeats of a minute pass. At the end of the minute, it logs the
// number of lines that it dropped.
type repeats struct {
	mu   sync.Mutex
	seen map[string]int
}

// repeating is a handler that limits repeated lines with repeats.
type repeating struct {
	slog.Handler
	repeats *repeats
}

func (h repeating) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelWarn || h.repeats.add(r, h.Handler) {
		return h.Handler.Handle(ctx, r)
	}
	return nil
}

func (h repeating) WithAttrs(attrs []slog.Attr) slog.Handler {
	return repeating{h.Handler.WithAttrs(attrs), h.repeats}
}

func (h repeating) WithGroup(name string) slog.Handler {
	return repeating{h.Handler.WithGroup(name), h.repeats}
}

// add counts a line and reports whether to log it.
func (l *repeats) add(r slog.Record, to slog.Handler) bool {
	key := repeatKey(r)
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

// end resets the count of a line after repeatsWindow. It logs how many lines were dropped.
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
	_ = to.Handle(context.Background(), r) // an error of the log cannot be logged
}

var numbers = regexp.MustCompile(`0x[0-9a-f]+|[0-9]+`)

// repeatKey returns a key that is equal for lines of the same kind: the message and the error without numbers, such as
// ports and pointers.
func repeatKey(r slog.Record) string {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "err" {
			text += " " + a.Value.String()
		}
		return a.Key != "err"
	})
	return numbers.ReplaceAllString(text, "")
}
