package server

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/sirupsen/logrus"
	"k8s.io/klog/v2"

	"github.com/hykube/hykube/server/engine"
)

// NewLogger returns a logger that writes to w. level is debug, info, warn or error; format is text or json. It returns
// an error for other values.
func NewLogger(w io.Writer, level, format string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("use --log-level %q: choose debug, info, warn or error", level)
	}
	opts := &slog.HandlerOptions{Level: l}
	switch format {
	case "text":
		return bounded(slog.NewTextHandler(w, opts)), nil
	case "json":
		return bounded(slog.NewJSONHandler(w, opts)), nil
	}
	return nil, fmt.Errorf("use --log-format %q: choose text or json", format)
}

// bounded returns a logger that logs an equal warning or error once, and then counts it each minute.
func bounded(h slog.Handler) *slog.Logger {
	return slog.New(repeating{h, newRepeats(1, lineKey)})
}

// BridgeLogs redirects the global loggers of libraries (Kubernetes' klog and kine's logrus) to logger. Only main may
// call it, once.
func BridgeLogs(logger *slog.Logger) {
	kubernetes := repeating{logger.With("component", "kubernetes").Handler(), newRepeats(mostOfLibraries, messageKey)}
	klog.SetSlogLogger(slog.New(engine.Quiet(kubernetes)))
	logrus.SetOutput(io.Discard)
	logrus.SetLevel(logrus.InfoLevel)
	kine := repeating{logger.With("component", "kine").Handler(),
		newRepeats(1, func(r slog.Record) string { return numbers.ReplaceAllString(r.Message, "") })}
	logrus.AddHook(logrusBridge{slog.New(kine)})
}

type logrusBridge struct{ logger *slog.Logger }

func (logrusBridge) Levels() []logrus.Level { return logrus.AllLevels }

func (b logrusBridge) Fire(e *logrus.Entry) error {
	// kine's info entries describe internals, so log them at level debug.
	level := slog.LevelDebug
	switch e.Level {
	case logrus.WarnLevel:
		level = slog.LevelWarn
	case logrus.ErrorLevel, logrus.FatalLevel, logrus.PanicLevel:
		level = slog.LevelError
	}
	if strings.Contains(e.Message, "sql: database is closed") || strings.Contains(e.Message, context.Canceled.Error()) {
		// A background task notices the server's stop a moment later. kine puts the error only into the text.
		level = slog.LevelDebug
	}
	attrs := make([]slog.Attr, 0, len(e.Data))
	for k, v := range e.Data {
		attrs = append(attrs, slog.Any(k, v))
	}
	b.logger.LogAttrs(e.Context, level, strings.TrimSpace(e.Message), attrs...)
	return nil
}
