package cli

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/hykube/hykube/internal/diff"
)

// terminal holds the streams and their capabilities. In a pipe, output is not coloured, cut or redrawn.
type terminal struct {
	genericiooptions.IOStreams
	// ask is true if input is a terminal, so that the command can ask at any time.
	ask bool
	// empty is true if input is closed or a null device, so that nothing can answer a question.
	empty bool
	// live is true if output is a terminal with cursor movement.
	live  bool
	style diff.Style
	// size is called for each redraw, because the window may be resized.
	size func() (width, height int)
	in   *bufio.Reader
	// typed receives the lines of input for questions.
	typed chan typed
}

// typed is a line of input, or the error of its read.
type typed struct {
	text string
	err  error
}

func newTerminal(streams genericiooptions.IOStreams) *terminal {
	t := &terminal{IOStreams: streams, size: func() (int, int) { return 0, 0 }, in: bufio.NewReader(streams.In)}
	if in, ok := streams.In.(*os.File); ok {
		t.ask = term.IsTerminal(int(in.Fd()))
		info, err := in.Stat()
		t.empty = err != nil || !t.ask && info.Mode()&os.ModeCharDevice != 0
	}
	if out, ok := streams.Out.(*os.File); ok && term.IsTerminal(int(out.Fd())) {
		t.live = os.Getenv("TERM") != "dumb"
		// https://no-color.org: any non-empty value disables colours.
		t.style.Color = t.live && os.Getenv("NO_COLOR") == ""
		t.size = func() (int, int) {
			w, h, err := term.GetSize(int(out.Fd()))
			if err != nil {
				return 0, 0
			}
			return w, h
		}
		t.style.Width, _ = t.size()
	}
	return t
}

// line reads one line of input.
func (t *terminal) line() (string, error) {
	s, err := t.in.ReadString('\n')
	if err == io.EOF && s != "" {
		err = nil
	}
	return s, err
}

// answers returns a channel with the lines of input. A line that comes after the end of its question answers the next
// one.
func (t *terminal) answers() <-chan typed {
	if t.typed == nil {
		lines := make(chan typed)
		t.typed = lines
		go func() {
			for {
				text, err := t.line()
				lines <- typed{text, err}
			}
		}()
	}
	return t.typed
}

// block is a redrawn part of the terminal. Finished lines are printed above it.
type block struct {
	w     io.Writer
	drawn int
}

// draw replaces the block. It uses synchronized output to avoid flicker.
func (b *block) draw(lines []string) {
	var s strings.Builder
	s.WriteString("\x1b[?2026h\x1b[?25l")
	b.erase(&s)
	for _, l := range lines {
		s.WriteString(l)
		s.WriteByte('\n')
	}
	b.drawn = len(lines)
	s.WriteString("\x1b[?2026l")
	_, _ = io.WriteString(b.w, s.String())
}

// clear removes the block and shows the cursor.
func (b *block) clear() {
	var s strings.Builder
	b.erase(&s)
	b.drawn = 0
	s.WriteString("\x1b[?25h")
	_, _ = io.WriteString(b.w, s.String())
}

func (b *block) erase(s *strings.Builder) {
	if b.drawn > 0 {
		fmt.Fprintf(s, "\x1b[%dA\r\x1b[J", b.drawn)
	}
}

// bar returns a progress bar of the given width.
func bar(done, total, width int) string {
	full := 0
	if total > 0 {
		full = width * min(done, total) / total
	}
	return strings.Repeat("━", full) + strings.Repeat("─", width-full)
}

// elapsed formats a duration: 850ms, 4s, 2m10s, 1h5m.
func elapsed(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh%dm", int(d.Hours()), int(d.Minutes())%60)
}
