package server

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/sirupsen/logrus"
	"k8s.io/klog/v2"
)

// NewLogger returns a logger that writes to w. Level is debug, info, warn or error; format is text or json.
func NewLogger(w io.Writer, level, format string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("use --log-level %q: choose debug, info, warn or error", level)
	}
	opts := &slog.HandlerOptions{Level: l}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(w, opts)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, opts)), nil
	}
	return nil, fmt.Errorf("use --log-format %q: choose text or json", format)
}

// BridgeLogs sends what libraries log through loggers of the whole process (Kubernetes' klog and kine's logrus) to
// logger. It is for main, once.
func BridgeLogs(logger *slog.Logger) {
	klog.SetSlogLogger(slog.New(quieter{logger.With("component", "kubernetes").Handler()}))
	logrus.SetOutput(io.Discard)
	logrus.SetLevel(logrus.InfoLevel)
	logrus.AddHook(logrusBridge{logger.With("component", "kine")})
}

type logrusBridge struct{ logger *slog.Logger }

func (logrusBridge) Levels() []logrus.Level { return logrus.AllLevels }

func (b logrusBridge) Fire(e *logrus.Entry) error {
	// kine's own info is about its inner life: debug, for us.
	level := slog.LevelDebug
	switch e.Level {
	case logrus.WarnLevel:
		level = slog.LevelWarn
	case logrus.ErrorLevel, logrus.FatalLevel, logrus.PanicLevel:
		level = slog.LevelError
	}
	if strings.Contains(e.Message, "sql: database is closed") || strings.Contains(e.Message, context.Canceled.Error()) {
		// Work in the background that learns a moment later that the server has stopped.
		level = slog.LevelDebug
	}
	attrs := make([]slog.Attr, 0, len(e.Data))
	for k, v := range e.Data {
		attrs = append(attrs, slog.Any(k, v))
	}
	b.logger.LogAttrs(e.Context, level, strings.TrimSpace(e.Message), attrs...)
	return nil
}

// quieter takes the info of a library for debug: it is about the library's inner life.
type quieter struct{ slog.Handler }

func (h quieter) Enabled(ctx context.Context, level slog.Level) bool {
	return h.Handler.Enabled(ctx, lower(level))
}

func (h quieter) Handle(ctx context.Context, r slog.Record) error {
	r.Level = lower(r.Level)
	return h.Handler.Handle(ctx, r)
}

func (h quieter) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quieter{h.Handler.WithAttrs(attrs)}
}
func (h quieter) WithGroup(name string) slog.Handler { return quieter{h.Handler.WithGroup(name)} }

func lower(level slog.Level) slog.Level {
	if level == slog.LevelInfo {
		return slog.LevelDebug
	}
	return level
}
