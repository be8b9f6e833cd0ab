package plugin

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	tailLines  = 20
	panicLines = 20
	// logRate and logBurst are the bytes that a plugin may log in a second, and at once.
	logRate, logBurst = 1 << 20, 4 << 20
	// maxLogged is the part of a line that is logged.
	maxLogged = 8 << 10
	maxLine   = 1 << 10 // bytes of a line to keep for an error
)

// lineTail reads a plugin's stderr. It logs the lines and keeps the last ones for an error message. Of a panic, it
// keeps the first lines instead, because the message comes before the stack.
type lineTail struct {
	logger *slog.Logger
	// rate limits the bytes that a plugin may log.
	rate *rate.Limiter

	mu sync.Mutex
	// dropped is the number of lines above the rate since the last one that was logged.
	dropped int
	last    []string
	panic   []string
}

func newLineTail(l *slog.Logger) *lineTail {
	return &lineTail{logger: l, rate: rate.NewLimiter(logRate, logBurst)}
}

func (t *lineTail) readFrom(r io.Reader) {
	br := bufio.NewReaderSize(r, 64<<10)
	for {
		line, more, err := br.ReadLine()
		if err != nil {
			t.reportDropped()
			return
		}
		t.add(string(line))
		for more && err == nil { // drop the rest of an overlong line
			_, more, err = br.ReadLine()
		}
	}
}

func (t *lineTail) add(line string) {
	if !t.rate.AllowN(time.Now(), min(len(line), logBurst)) {
		t.mu.Lock()
		t.dropped++
		t.mu.Unlock()
		t.keep(line, line)
		return
	}
	level, message := parseLine(line)
	t.reportDropped()
	t.logger.Log(context.Background(), level, "provider: "+message[:min(len(message), maxLogged)])
	if level < slog.LevelInfo && strings.HasPrefix(line, "{") {
		return // go-plugin's own messages
	}
	t.keep(line, message)
}

// reportDropped logs the number of lines that were dropped.
func (t *lineTail) reportDropped() {
	t.mu.Lock()
	dropped := t.dropped
	t.dropped = 0
	t.mu.Unlock()
	if dropped > 0 {
		t.logger.Warn("the provider logs too much, lines were dropped", "dropped", dropped)
	}
}

// keep keeps a line for an error message.
func (t *lineTail) keep(line, message string) {
	if len(message) > maxLine {
		message = message[:maxLine]
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case len(t.panic) == 0 && (strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ")),
		len(t.panic) > 0 && len(t.panic) < panicLines:
		t.panic = append(t.panic, message)
	}
	if len(t.last) == tailLines {
		t.last = slices.Delete(t.last, 0, 1)
	}
	t.last = append(t.last, message)
}

func (t *lineTail) lines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.panic) > 0 {
		return slices.Clone(t.panic)
	}
	return slices.Clone(t.last)
}

// Write receives the plugin's os.Stdout and os.Stderr after its start, which go-plugin sends over the connection.
func (t *lineTail) Write(p []byte) (int, error) {
	for line := range strings.Lines(string(p)) {
		t.add(strings.TrimRight(line, "\r\n"))
	}
	return len(p), nil
}

// parseLine returns the level and message of a log line in hclog's JSON format. It drops the other fields: they contain
// requests and responses, which may hold secrets. A line in another format has level debug, unless it begins with a
// level.
func parseLine(line string) (slog.Level, string) {
	var entry struct {
		Level   string `json:"@level"`
		Message string `json:"@message"`
	}
	if strings.HasPrefix(line, "{") && json.Unmarshal([]byte(line), &entry) == nil && entry.Message != "" {
		return level(entry.Level), entry.Message
	}
	// after the timestamp of package log
	if rest, ok := strings.CutPrefix(strings.TrimLeft(line, "0123456789/:. "), "["); ok {
		if name, message, ok := strings.Cut(rest, "] "); ok && len(name) <= 5 {
			return level(strings.ToLower(name)), message
		}
	}
	if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
		return slog.LevelError, line
	}
	return slog.LevelDebug, line
}

func level(name string) slog.Level {
	switch name {
	case "error":
		return slog.LevelError
	case "warn":
		return slog.LevelWarn
	case "info":
		return slog.LevelInfo
	default:
		return slog.LevelDebug
	}
}
