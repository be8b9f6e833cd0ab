package plugin

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

// The tests of the pool cover the start, the crash and the stop of a real plugin.

func TestParseLine(t *testing.T) {
	for _, tc := range []struct {
		line  string
		level slog.Level
		want  string
	}{
		{`{"@level":"warn","@message":"slow","@module":"sdk","password":"hunter2"}`, slog.LevelWarn, "slow"},
		{`{"@level":"trace","@message":"request"}`, slog.LevelDebug, "request"},
		{`{"not":"ours"}`, slog.LevelDebug, `{"not":"ours"}`},
		{`[ERROR] broken`, slog.LevelError, "broken"},
		{`2026/11/21 02:53:22 [INFO] starting up`, slog.LevelInfo, "starting up"},
		{`panic: oh`, slog.LevelError, "panic: oh"},
		{`anything`, slog.LevelDebug, "anything"},
		{``, slog.LevelDebug, ""},
		{`[`, slog.LevelDebug, "["},
	} {
		if level, got := parseLine(tc.line); level != tc.level || got != tc.want {
			t.Errorf("parseLine(%q) = %v, %q; want %v, %q", tc.line, level, got, tc.level, tc.want)
		}
	}
}

func TestLineTail(t *testing.T) {
	var log bytes.Buffer
	tail := newLineTail(slog.New(slog.NewTextHandler(&log, nil)))
	var in strings.Builder
	for i := range 50 {
		fmt.Fprintf(&in, "line %d\n", i)
	}
	in.WriteString(strings.Repeat("x", 1<<20) + "\nlast without an end\n")
	tail.readFrom(strings.NewReader(in.String()))
	got := tail.lines()
	if len(got) != tailLines || got[0] != "line 32" || got[len(got)-1] != "last without an end" || len(got[len(got)-2]) > maxLine {
		t.Errorf("kept %d lines from %q to %q", len(got), got[0], got[len(got)-1])
	}
	tail.readFrom(strings.NewReader("panic: boom\n\ngoroutine 1:\n" + strings.Repeat("frame\n", 200)))
	if got := tail.lines(); got[0] != "panic: boom" || len(got) != panicLines {
		t.Errorf("a panic is not kept from its beginning: %d lines, first %q", len(got), got[0])
	}
	if strings.Contains(log.String(), "line 3") {
		t.Error("a plain line was logged above debug")
	}
}

// TestUnavailableErrorShowsOnlyTheStack has a panic that prints a secret.
func TestUnavailableErrorShowsOnlyTheStack(t *testing.T) {
	err := &UnavailableError{Provider: "sim", Reason: "exit status 2", Stderr: strings.Split(`level=info token=hunter2
panic: cannot use hunter2

goroutine 7 [running]:
main.(*server).apply(0xc000012345, {0x1, 0x2, ...})
	/src/provider/server.go:42 +0x1d
hunter2
github.com/hashicorp/terraform-plugin-go/tfprotov6.serve[...](...)
	/src/go/pkg/mod/x@v1.2.3/serve.go:7
created by main.main in goroutine 1`, "\n")}
	text := err.Error()
	if strings.Contains(text, "hunter2") {
		t.Errorf("the error shows a secret: %s", text)
	}
	for _, want := range []string{"exit status 2", "main.(*server).apply(", "server.go:42 +0x1d", "created by main.main in goroutine 1"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
}
