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

	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/log/tag"
)

// bridge writes Temporal's log to ours. Temporal tells of its inner life at "info", so that becomes our debug.
type bridge struct {
	slog  *slog.Logger
	state *bridgeState
}

// bridgeState is shared by a bridge and all that were made of it with With.
type bridgeState struct {
	constructing atomic.Bool // Temporal's parts are being made, on one goroutine
	stopping     atomic.Bool // what goes wrong while everything is being stopped is no news

	mu    sync.Mutex
	fatal error
}

func newBridge(logger *slog.Logger) *bridge {
	return &bridge{slog: logger.With("component", "temporal"), state: new(bridgeState)}
}

func (b *bridge) Debug(msg string, tags ...tag.Tag) { b.log(slog.LevelDebug-4, msg, tags) }
func (b *bridge) Info(msg string, tags ...tag.Tag)  { b.log(slog.LevelDebug, msg, tags) }
func (b *bridge) Warn(msg string, tags ...tag.Tag) {
	level := slog.LevelInfo
	if strings.HasPrefix(msg, "HTTP API port has not been set") {
		level = slog.LevelDebug // so we want it
	}
	b.log(level, msg, tags)
}
func (b *bridge) Error(msg string, tags ...tag.Tag) { b.log(slog.LevelError, msg, tags) }

// DPanic panics in development builds only, says Temporal.
func (b *bridge) DPanic(msg string, tags ...tag.Tag) { b.log(slog.LevelError, msg, tags) }

func (b *bridge) Panic(msg string, tags ...tag.Tag) {
	b.log(slog.LevelError, msg, tags)
	panic(msg)
}

// Fatal ends the calling goroutine instead of the process: Temporal would exit when a port is taken, but whether
// this server lives is not its decision. The failure is kept for Start, which tries other ports, and for Healthy.
// While the server is being made it panics with the failure, for construct to catch: Goexit does not pass through
// the sync.OnceValue in which Temporal listens.
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

// construct calls f and returns the failure with which Fatal ended it.
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

// SLog gives our logger to the parts of Temporal that speak slog.
func (b *bridge) SLog() *slog.Logger { return slog.New(quiet(b.slog.Handler())) }

func (b *bridge) log(level slog.Level, msg string, tags []tag.Tag) {
	if level > slog.LevelDebug && (b.state.stopping.Load() || hungUp(tags)) {
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

// hungUp says whether an entry is about a call whose caller went away, as a worker's poll does when the worker stops.
func hungUp(tags []tag.Tag) bool {
	for _, t := range tags {
		if t.Key() != "error" {
			continue
		}
		if err, ok := tagValue(t).(error); ok && errors.Is(err, context.Canceled) {
			return true
		}
		return strings.HasSuffix(fmt.Sprint(t.Value()), context.Canceled.Error())
	}
	return false
}

func attr(t tag.Tag) slog.Attr { return slog.Any(t.Key(), t.Value()) }

// tagValue finds the value that a tag carries, before zap turns an error into its text.
func tagValue(t tag.Tag) any {
	if z, ok := t.(tag.ZapTag); ok {
		return z.Field().Interface
	}
	return t.Value()
}

// quiet passes on what a Temporal library says at "info" as debug, and the rest as it is.
func quiet(h slog.Handler) slog.Handler { return quietHandler{h} }

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
	r.Level = quieter(r.Level)
	return h.Handler.Handle(ctx, r)
}

func (h quietHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quietHandler{h.Handler.WithAttrs(attrs)}
}

func (h quietHandler) WithGroup(name string) slog.Handler {
	return quietHandler{h.Handler.WithGroup(name)}
}
