package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"go.temporal.io/api/serviceerror"
)

// TestQuiet expects a library's internals, and its cancelled calls, below the level info.
func TestQuiet(t *testing.T) {
	for reason, tc := range map[string]struct {
		level slog.Level
		err   error
		shown bool
	}{
		"information":               {slog.LevelInfo, nil, false},
		"a warning":                 {slog.LevelWarn, nil, true},
		"an error":                  {slog.LevelError, errors.New("disk full"), true},
		"a cancelled call":          {slog.LevelWarn, serviceerror.NewCanceled("context canceled"), false},
		"a wrapped cancelled call":  {slog.LevelError, fmt.Errorf("poll: %w", context.Canceled), false},
		"one that lost its type":    {slog.LevelWarn, serviceerror.NewUnavailable("record heartbeat: context canceled"), false},
		"a call that took too long": {slog.LevelWarn, serviceerror.NewDeadlineExceeded("deadline"), true},
	} {
		t.Run(reason, func(t *testing.T) {
			at := map[slog.Level]bool{}
			for _, level := range []slog.Level{slog.LevelInfo, slog.LevelDebug} {
				var out bytes.Buffer
				logger := slog.New(Quiet(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: level})))
				logger.With("component", "temporal").Log(t.Context(), tc.level, "it happened", "Error", tc.err)
				at[level] = strings.Contains(out.String(), "it happened")
			}
			if at[slog.LevelInfo] != tc.shown || !at[slog.LevelDebug] {
				t.Errorf("shown at info %t, at debug %t", at[slog.LevelInfo], at[slog.LevelDebug])
			}
		})
	}
}
