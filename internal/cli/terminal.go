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

// terminal is what the streams can do. In a pipe nothing is coloured, cut or redrawn.
type terminal struct {
	genericiooptions.IOStreams
	// ask is true when a person can be asked: input and error output are a terminal.
	ask bool
	// live is true when output is a terminal that understands cursor movement.
	live  bool
	style diff.Style
	// size is asked again for each redraw, since people resize windows.
	size func() (width, height int)
	in   *bufio.Reader
}

func newTerminal(streams genericiooptions.IOStreams) *terminal {
	t := &terminal{IOStreams: streams, size: func() (int, int) { return 0, 0 }, in: bufio.NewReader(streams.In)}
	in, ok := streams.In.(*os.File)
	t.ask = ok && term.IsTerminal(int(in.Fd()))
	if out, ok := streams.Out.(*os.File); ok && term.IsTerminal(int(out.Fd())) {
		t.live = os.Getenv("TERM") != "dumb"
		// https://no-color.org: any value but the empty one turns colours off.
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

// line reads one answer.
func (t *terminal) line() (string, error) {
	s, err := t.in.ReadString('\n')
	if err == io.EOF && s != "" {
		err = nil
	}
	return s, err
}

// block is a part of the terminal that is drawn again and again; what is finished scrolls away above it.
type block struct {
	w     io.Writer
	drawn int
}

// draw replaces the block. The terminal is told to show the new one at once (synchronized output), so that it
// doesn't flicker.
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

// clear takes the block away and gives the cursor back.
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

// bar is a progress bar of a number of columns.
func bar(done, total, width int) string {
	full := 0
	if total > 0 {
		full = width * min(done, total) / total
	}
	return strings.Repeat("━", full) + strings.Repeat("─", width-full)
}

// elapsed writes a duration as people say it: 850ms, 4s, 2m10s, 1h5m.
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
