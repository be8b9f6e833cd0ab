package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/log/tag"
)

// bridge writes Temporal's log to slog. It logs Temporal's "info" entries, which describe internals, at level debug.
type bridge struct {
	slog  *slog.Logger
	state *bridgeState
}

// bridgeState is the shared state of a bridge and all bridges that With derived from it.
type bridgeState struct {
	constructing atomic.Bool // one goroutine constructs Temporal's components
	stopping     atomic.Bool // errors during the shutdown are expected

	mu    sync.Mutex
	fatal error
}

func (b *bridge) Debug(msg string, tags ...tag.Tag) { b.log(slog.LevelDebug-4, msg, tags) }
func (b *bridge) Info(msg string, tags ...tag.Tag)  { b.log(slog.LevelDebug, msg, tags) }
func (b *bridge) Warn(msg string, tags ...tag.Tag) {
	level := slog.LevelInfo
	if strings.HasPrefix(msg, "HTTP API port has not been set") {
		level = slog.LevelDebug // Hykube needs no HTTP API, and Temporal's warning has no tag
	}
	b.log(level, msg, tags)
}
func (b *bridge) Error(msg string, tags ...tag.Tag) { b.log(slog.LevelError, msg, tags) }

// DPanic logs an error. Temporal defines that it panics only in development builds.
func (b *bridge) DPanic(msg string, tags ...tag.Tag) { b.log(slog.LevelError, msg, tags) }

func (b *bridge) Panic(msg string, tags ...tag.Tag) {
	b.log(slog.LevelError, msg, tags)
	panic(msg)
}

// Fatal ends the calling goroutine instead of the process: Temporal would exit if a port is in use, but Hykube must
// not. It records the error for Start, which tries other ports, and for Healthy. During construction it panics with the
// error, which construct recovers. Goexit would not pass through the sync.OnceValue in which Temporal listens.
func (b *bridge) Fatal(msg string, tags ...tag.Tag) {
	err := errors.New(msg)
	for _, t := range tags {
		if cause, ok := tagValue(t).(error); ok {
			err = fmt.Errorf("%s: %w", msg, cause)
		} else if t.Key() == "error" {
			err = fmt.Errorf("%s: %v", msg, t.Value())
		}
	}
	if !b.state.stopping.Load() {
		b.state.mu.Lock()
		if b.state.fatal == nil {
			b.state.fatal = err
		}
		b.state.mu.Unlock()
	}
	b.log(slog.LevelDebug, "gave up: "+msg, tags)
	if b.state.constructing.Load() {
		panic(gaveUp{err})
	}
	runtime.Goexit()
}

type gaveUp struct{ error }

// construct calls f and returns its error, or the error with which Fatal ended it.
func (b *bridge) construct(f func() error) (err error) {
	b.state.constructing.Store(true)
	defer b.state.constructing.Store(false)
	defer func() {
		switch r := recover().(type) {
		case nil:
		case gaveUp:
			err = r.error
		default:
			panic(r)
		}
	}()
	return f()
}

func (b *bridge) With(tags ...tag.Tag) log.Logger {
	args := make([]any, 0, len(tags))
	for _, t := range tags {
		args = append(args, attr(t))
	}
	return &bridge{slog: b.slog.With(args...), state: b.state}
}

// SLog returns a logger for the components of Temporal that use slog.
func (b *bridge) SLog() *slog.Logger { return slog.New(Quiet(b.slog.Handler())) }

func (b *bridge) log(level slog.Level, msg string, tags []tag.Tag) {
	if level > slog.LevelDebug && (b.state.stopping.Load() || isCancelledCall(tags)) {
		level = slog.LevelDebug
	}
	ctx := context.Background()
	if !b.slog.Enabled(ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, len(tags))
	for _, t := range tags {
		attrs = append(attrs, attr(t))
	}
	b.slog.LogAttrs(ctx, level, msg, attrs...)
}

// isCancelledCall reports whether an entry is about a cancelled call, such as a worker's poll when the worker stops.
func isCancelledCall(tags []tag.Tag) bool {
	for _, t := range tags {
		if t.Key() == "error" {
			err, ok := tagValue(t).(error)
			return ok && cancelled(err) || endsCancelled(t.Value())
		}
	}
	return false
}

func attr(t tag.Tag) slog.Attr { return slog.Any(t.Key(), t.Value()) }

// tagValue returns the value of a tag, before zap converts an error to text.
func tagValue(t tag.Tag) any {
	if z, ok := t.(tag.ZapTag); ok {
		return z.Field().Interface
	}
	return t.Value()
}

// Quiet logs a library's "info" entries at level debug, because they describe internals. Warnings and errors keep their
// level, except those about a cancelled call, such as a heartbeat after the end of its activity.
func Quiet(h slog.Handler) slog.Handler { return quietHandler{h} }

type quietHandler struct{ slog.Handler }

func quieter(level slog.Level) slog.Level {
	if level < slog.LevelInfo {
		return level - 4
	}
	if level < slog.LevelWarn {
		return slog.LevelDebug
	}
	return level
}

func (h quietHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.Handler.Enabled(ctx, quieter(level))
}

func (h quietHandler) Handle(ctx context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if err, ok := a.Value.Any().(error); ok && cancelled(err) {
			r.Level = slog.LevelInfo
		}
		return r.Level > slog.LevelInfo
	})
	if r.Level = quieter(r.Level); !h.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// cancelled reports whether a call failed because its caller cancelled it.
func cancelled(err error) bool {
	_, ok := errors.AsType[*serviceerror.Canceled](err)
	return ok || errors.Is(err, context.Canceled) || endsCancelled(err)
}

// endsCancelled reports whether an error that lost its type ends as context.Canceled does.
func endsCancelled(err any) bool { return strings.HasSuffix(fmt.Sprint(err), context.Canceled.Error()) }

func (h quietHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quietHandler{h.Handler.WithAttrs(attrs)}
}

func (h quietHandler) WithGroup(name string) slog.Handler {
	return quietHandler{h.Handler.WithGroup(name)}
}
