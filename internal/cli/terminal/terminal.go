// Package terminal is the streams of a command and what they can do: colours, questions, lines that are redrawn. It
// knows no server.
package terminal

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

// Terminal holds the streams and their capabilities. In a pipe, output is not coloured, cut or redrawn.
type Terminal struct {
	genericiooptions.IOStreams
	// Ask is true if input is a terminal, so that the command can ask at any time.
	Ask bool
	// Empty is true if input is closed or a null device, so that nothing can answer a question.
	Empty bool
	// Live is true if output is a terminal with cursor movement.
	Live  bool
	Style diff.Style
	// Size is called for each redraw, because the window may be resized.
	Size  func() (width, height int)
	Input *bufio.Reader
	// typed receives the lines of input for questions.
	typed chan typed
}

// typed is a line of input, or the error of its read.
type typed struct {
	Text string
	Err  error
}

// New returns the terminal of streams.
func New(streams genericiooptions.IOStreams) *Terminal {
	t := &Terminal{IOStreams: streams, Size: func() (int, int) { return 0, 0 }, Input: bufio.NewReader(streams.In)}
	if in, ok := streams.In.(*os.File); ok {
		t.Ask = term.IsTerminal(int(in.Fd()))
		info, err := in.Stat()
		t.Empty = err != nil || !t.Ask && info.Mode()&os.ModeCharDevice != 0
	}
	if out, ok := streams.Out.(*os.File); ok && term.IsTerminal(int(out.Fd())) {
		t.Live = os.Getenv("TERM") != "dumb"
		// https://no-color.org: any non-empty value disables colours.
		t.Style.Color = t.Live && os.Getenv("NO_COLOR") == ""
		t.Size = func() (int, int) {
			w, h, err := term.GetSize(int(out.Fd()))
			if err != nil {
				return 0, 0
			}
			return w, h
		}
		t.Style.Width, _ = t.Size()
	}
	return t
}

// Line reads one line of input.
func (t *Terminal) Line() (string, error) {
	s, err := t.Input.ReadString('\n')
	if err == io.EOF && s != "" {
		err = nil
	}
	return s, err
}

// Answers returns a channel with the lines of input. A line that comes after the end of its question answers the next
// one.
func (t *Terminal) Answers() <-chan typed {
	if t.typed == nil {
		lines := make(chan typed)
		t.typed = lines
		go func() {
			for {
				text, err := t.Line()
				lines <- typed{text, err}
			}
		}()
	}
	return t.typed
}

// Block is a redrawn part of the terminal. Finished lines are printed above it.
type Block struct {
	W     io.Writer
	Drawn int
}

// Draw replaces the block. It uses synchronized output to avoid flicker.
func (b *Block) Draw(lines []string) {
	var s strings.Builder
	s.WriteString("\x1b[?2026h\x1b[?25l")
	b.erase(&s)
	for _, l := range lines {
		s.WriteString(l)
		s.WriteByte('\n')
	}
	b.Drawn = len(lines)
	s.WriteString("\x1b[?2026l")
	_, _ = io.WriteString(b.W, s.String())
}

// Clear removes the block and shows the cursor.
func (b *Block) Clear() {
	var s strings.Builder
	b.erase(&s)
	b.Drawn = 0
	s.WriteString("\x1b[?25h")
	_, _ = io.WriteString(b.W, s.String())
}

func (b *Block) erase(s *strings.Builder) {
	if b.Drawn > 0 {
		fmt.Fprintf(s, "\x1b[%dA\r\x1b[J", b.Drawn)
	}
}

// Bar returns a progress bar of the given width.
func Bar(done, total, width int) string {
	full := 0
	if total > 0 {
		full = width * min(done, total) / total
	}
	return strings.Repeat("━", full) + strings.Repeat("─", width-full)
}

// Elapsed formats a duration: 850ms, 4s, 2m10s, 1h5m.
func Elapsed(d time.Duration) string {
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
