package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hykube/hykube/tests/harness"
)

// tutorial is the page whose commands TestTutorial types. Set HYKUBE_TEST_RECORD=1 to write the real output into it.
const tutorial = "../../docs/tutorial.md"

// block is a fenced block of a page: a file, or commands with their output.
type block struct {
	// language is console or yaml, and file the name behind it.
	language, file string
	lines          []string
	// at is the number of the first line.
	at int
}

// blocks returns the fenced blocks of a page.
func blocks(t *testing.T, page []string) (all []block) {
	t.Helper()
	var open *block
	for i, line := range page {
		switch info, fence := strings.CutPrefix(line, "```"); {
		case fence && open == nil:
			language, file, _ := strings.Cut(info, " ")
			open = &block{language: language, file: file, at: i + 1}
		case fence:
			all, open = append(all, *open), nil
		case open != nil:
			open.lines = append(open.lines, line)
		}
	}
	if open != nil {
		t.Fatalf("the block at line %d has no end", open.at)
	}
	return all
}

// typed is a command of a block, with the output that the page shows.
type typed struct {
	command string
	want    []string
}

func commands(b block) (all []typed) {
	for _, line := range b.lines {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			all = append(all, typed{command: command})
		} else if n := len(all); n > 0 {
			all[n-1].want = append(all[n-1].want, line)
		}
	}
	return all
}

// terminal is a shell that keeps its variables, its directory and its jobs between commands.
type terminal struct {
	in  io.Writer
	out *bufio.Reader
}

// failure is in the output of a command that fails.
var failure = regexp.MustCompile(`(?m)^(Error:|Error from server|error:)`)

// mark follows the output of each command, with its exit code.
const mark = "--end-of-command-"

func newTerminal(t *testing.T, dir string, env ...string) *terminal {
	t.Helper()
	cmd := exec.Command("bash", "--norc", "--noprofile")
	cmd.Dir, cmd.Env = dir, append([]string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = write, write
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = write.Close()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) // the shell and its jobs
		_ = cmd.Wait()
		_ = read.Close()
	})
	return &terminal{in, bufio.NewReader(read)}
}

// run types a command, and returns its output and its exit code.
func (s *terminal) run(command string) (lines []string, code int, err error) {
	if _, err := fmt.Fprintf(s.in, "%s\nprintf '\\n%s%%d\\n' $?\n", command, mark); err != nil {
		return nil, 0, err
	}
	for {
		line, err := s.out.ReadString('\n')
		if err != nil {
			return lines, 0, fmt.Errorf("the shell ended: %w", err)
		}
		line = strings.TrimRight(line, "\n")
		if number, ok := strings.CutPrefix(line, mark); ok {
			code, err = strconv.Atoi(number)
			for len(lines) > 0 && lines[len(lines)-1] == "" { // the empty line before the mark, and those of the command
				lines = lines[:len(lines)-1]
			}
			return lines, code, err
		}
		lines = append(lines, strings.TrimRight(line, " "))
	}
}

// varying are the parts of an output that differ from run to run, and what stands for them in a comparison.
var varying = []struct {
	is *regexp.Regexp
	as string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "TIME"},
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\d\b`), "DATE"},
	{regexp.MustCompile(`\b(\d+m)?\d+(\.\d+)?(ms|s)\b`), "DURATION"},
	{regexp.MustCompile(`(drift-[0-9a-z]+)-(\d+)\b`), "drift-ID-$2"},
	{regexp.MustCompile(`pwd-[0-9A-Z]+`), "pwd-ID"},
	{regexp.MustCompile(`sha256:[0-9a-f]+`), "sha256:DIGEST"},
	{regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`), "UID"},
	{regexp.MustCompile(`or up to .* later`), "or up to SOME TIME later"},
	{regexp.MustCompile(`^\[\d+\] \d+$`), "[JOB] PID"},
	{regexp.MustCompile(` +`), " "}, // columns are as wide as their contents
}

func comparable(lines []string) []string {
	out := make([]string, 0, len(lines))
	for _, line := range lines {
		for _, v := range varying {
			line = v.is.ReplaceAllString(line, v.as)
		}
		out = append(out, strings.TrimSpace(line))
	}
	return out
}

// shows reports whether a page shows an output. The line [...] in the page stands for any lines.
func shows(page, output []string) bool {
	if len(page) == 0 {
		return len(output) == 0
	}
	if page[0] == "[...]" {
		for skipped := 0; skipped <= len(output); skipped++ {
			if shows(page[1:], output[skipped:]) {
				return true
			}
		}
		return false
	}
	return len(output) > 0 && page[0] == output[0] && shows(page[1:], output[1:])
}

// TestTutorial types the commands of docs/tutorial.md in a shell, on a machine with the binaries and nothing else, and
// compares the output with that of the page.
func TestTutorial(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	linkBinaries(t, dir)
	// The page has the usual ports, which may be in use here.
	ports := strings.NewReplacer("6443", freePort(t), "8642", freePort(t))
	if ran := typePage(t, tutorial, dir, filepath.Join(dir, "tutorial"), ports); ran < 30 {
		t.Errorf("the page has only %d commands", ran)
	}
}

// linkBinaries puts the binaries and the mirror where a copy of the repository has them.
func linkBinaries(t *testing.T, dir string) {
	t.Helper()
	binaries, err := harness.Built()
	if err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"bin": binaries.Bin, ".cache/mirror": binaries.Mirror} {
		link = filepath.Join(dir, link)
		if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
}

// typePage types the commands of a page in a shell in dir, and compares the output with that of the page. A command must fail if and
// only if the page shows an error. It writes the files that the page names into a directory. here replaces what is another on this
// machine than on the page. It returns the number of commands.
func typePage(t *testing.T, path, dir, files string, here *strings.Replacer) (ran int) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page := strings.Split(string(text), "\n")
	shell := newTerminal(t, dir)
	record := os.Getenv("HYKUBE_TEST_RECORD") != ""
	var recorded []string
	copied := 0
	for _, b := range blocks(t, page) {
		recorded = append(recorded, page[copied:b.at]...)
		copied = b.at + len(b.lines)
		if b.language != "console" {
			recorded = append(recorded, b.lines...)
			if b.file != "" {
				if err := os.WriteFile(filepath.Join(files, b.file), []byte(strings.Join(b.lines, "\n")+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			continue
		}
		for _, c := range commands(b) {
			ran++
			began := time.Now()
			got, code, err := shell.run(here.Replace(c.command))
			if err != nil {
				t.Fatalf("%s: %v\n%s", c.command, err, strings.Join(got, "\n"))
			}
			t.Logf("%s $ %s\n%s", time.Since(began).Round(time.Millisecond), c.command, strings.Join(got, "\n"))
			recorded = append(append(recorded, "$ "+c.command), got...)
			if record {
				continue
			}
			if want := failure.MatchString(strings.Join(c.want, "\n")); (code != 0) != want {
				t.Fatalf("%s exits with %d, and the page shows an error: %t\n%s", c.command, code, want, strings.Join(got, "\n"))
			}
			want := comparable(strings.Split(here.Replace(strings.Join(c.want, "\n")), "\n"))
			if len(c.want) == 0 {
				want = nil
			}
			if got := comparable(got); !shows(want, got) {
				t.Fatalf("%s: the page shows another output (-page +output):\n%s", c.command, cmp.Diff(want, got))
			}
		}
	}
	if record {
		recorded = append(recorded, page[copied:]...)
		if err := os.WriteFile(path, []byte(strings.Join(recorded, "\n")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return ran
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}
