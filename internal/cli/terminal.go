package cli

import (
	"bufio"
	"io"
	"os"

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
