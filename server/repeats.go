package server

import (
	"context"
	"log/slog"
	"regexp"
	"sync"
	"time"
)

const (
	// repeatsWindow is the time in which the log limits equal lines. mostOfLibraries is the maximum of equal lines of
	// Kubernetes' libraries in that time; of other lines, it is one.
	repeatsWindow   = time.Minute
	mostOfLibraries = 10
	// maxRepeatKeys bounds the number of different lines that the log counts. Further lines count as equal if their
	// messages are equal.
	maxRepeatKeys = 500
)

// repeats limits warnings and errors that repeat, such as one for each attempt to reach a database that is away. For
// each line, it lets the first ones of a minute pass. From then on it logs once a minute how many lines it dropped,
// until the line stays away for a minute.
type repeats struct {
	// most is the number of equal lines that pass.
	most int
	// key returns equal texts for equal lines.
	key func(slog.Record) string

	mu   sync.Mutex
	seen map[string]*repeated
}

// repeated counts a line since its minute began.
type repeated struct {
	count int
	// flooding is true if lines were dropped in an earlier minute.
	flooding bool
}

func newRepeats(most int, key func(slog.Record) string) *repeats {
	return &repeats{most: most, key: key, seen: map[string]*repeated{}}
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
	key := l.key(r)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen[key] == nil && len(l.seen) >= maxRepeatKeys {
		key = r.Message
	}
	of := l.seen[key]
	if of == nil {
		of = &repeated{}
		l.seen[key] = of
		time.AfterFunc(repeatsWindow, func() { l.end(key, r, to) })
	}
	of.count++
	return !of.flooding && of.count <= l.most
}

// end ends the minute of a line. It logs how many lines were dropped, or that they have ended.
func (l *repeats) end(key string, first slog.Record, to slog.Handler) {
	l.mu.Lock()
	of := l.seen[key]
	left := of.count
	if !of.flooding {
		left -= l.most
	}
	ended := of.flooding && left == 0
	if of.count, of.flooding = 0, left > 0; of.flooding {
		time.AfterFunc(repeatsWindow, func() { l.end(key, first, to) })
	} else {
		delete(l.seen, key)
	}
	l.mu.Unlock()
	r := first.Clone()
	r.Time = time.Now()
	switch {
	case left > 0:
		r.AddAttrs(slog.Int("leftOut", left), slog.Duration("within", repeatsWindow))
	case ended:
		r.Level = slog.LevelInfo
		r.AddAttrs(slog.String("ended", "the line was not repeated within "+repeatsWindow.String()))
	default:
		return
	}
	_ = to.Handle(context.Background(), r) // an error of the log cannot be logged
}

var numbers = regexp.MustCompile(`0x[0-9a-f]+|[0-9]+`)

// messageKey returns a key that is equal for lines of the same kind: the message and the error without numbers, such as
// ports and pointers.
func messageKey(r slog.Record) string {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "err" {
			text += " " + a.Value.String()
		}
		return a.Key != "err"
	})
	return numbers.ReplaceAllString(text, "")
}

// lineKey returns a key that is equal for lines with the same message and attributes. An error may have other numbers.
func lineKey(r slog.Record) string {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool {
		value := a.Value.String()
		if a.Key == "error" {
			value = numbers.ReplaceAllString(value, "")
		}
		text += " " + a.Key + "=" + value
		return true
	})
	return text
}
