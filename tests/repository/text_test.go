package repository

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/hykube/hykube/internal/cli"
)

func TestLicence(t *testing.T) {
	t.Parallel()
	text := read(t, "LICENSE")
	for _, want := range []string{"GNU AFFERO GENERAL PUBLIC LICENSE", "Version 3, 19 November 2007", "END OF TERMS AND CONDITIONS"} {
		if !strings.Contains(text, want) {
			t.Errorf("LICENSE lacks %q", want)
		}
	}
}

// TestNoFileNamesAMachine finds paths of one machine, and hosts of package registries.
func TestNoFileNamesAMachine(t *testing.T) {
	t.Parallel()
	words := []*regexp.Regexp{
		regexp.MustCompile(`proxy\.golang` + `\.org|registry\.npmjs` + `\.org|deb\.debian` + `\.org|pypi` + `\.org`),
		regexp.MustCompile(`(^|[\s"'=(:\x60])/(root|work|home/[a-z]+)/`),
	}
	for _, file := range list(t, "") {
		for i, line := range strings.Split(read(t, file), "\n") {
			for _, word := range words {
				if found := word.FindString(line); found != "" {
					t.Errorf("%s:%d says %q", file, i+1, strings.TrimSpace(found))
				}
			}
		}
	}
}

// TestPagesHaveTheirQuestion checks that the title of each page is the question under which docs/README.md lists it.
// There, the question may name more of the page's contents.
func TestPagesHaveTheirQuestion(t *testing.T) {
	t.Parallel()
	rows := regexp.MustCompile(`(?m)^\| (.+) \| \[.*\]\(([a-z-]+\.md)\) \|$`).FindAllStringSubmatch(read(t, "docs/README.md"), -1)
	if len(rows) == 0 {
		t.Fatal("docs/README.md lists no pages")
	}
	for _, row := range rows {
		title, _, _ := strings.Cut(read(t, "docs/"+row[2]), "\n")
		if want := strings.TrimSuffix(strings.TrimPrefix(title, "# "), "?"); !strings.HasPrefix(row[1], want) {
			t.Errorf("docs/%s has the title %q, and docs/README.md lists it as %q", row[2], title, row[1])
		}
	}
}

var makeTarget = regexp.MustCompile(`(?m)^([a-z][a-z-]*):`)

func TestMakeHelpListsEveryTarget(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("make", "-s", "help")
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("make help: %v\n%s", err, out)
	}
	makefile := read(t, "Makefile")
	for _, target := range makeTargets(t) {
		if !regexp.MustCompile(`(?m)^ +make ` + target + ` +\S`).Match(out) {
			t.Errorf("make help does not list %q", target)
		}
		if !strings.Contains(makefile, "\n.PHONY: "+target+"\n") {
			t.Errorf("the target %q is not .PHONY: a file of that name would hide it", target)
		}
	}
	for line := range strings.Lines(string(out)) {
		if len(line) > 121 {
			t.Errorf("make help does not fit a line: %s", line)
		}
	}
}

func makeTargets(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, m := range makeTarget.FindAllStringSubmatch(read(t, "Makefile"), -1) {
		out = append(out, m[1])
	}
	if len(out) < 5 {
		t.Fatalf("found only the targets %v in the Makefile", out)
	}
	return out
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	fence   = regexp.MustCompile("(?ms)^```.*?^```")
)

func TestLinksResolve(t *testing.T) {
	t.Parallel()
	for _, page := range list(t, ".md") {
		for _, m := range link.FindAllStringSubmatch(fence.ReplaceAllString(read(t, page), ""), -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			file := page
			if target != "" {
				file = path.Join(path.Dir(page), target)
			}
			if _, err := os.Stat(filepath.Join(root, file)); err != nil {
				t.Errorf("%s links to %s, which is not there", page, m[1])
				continue
			}
			if anchor != "" && !slices.Contains(anchors(read(t, file)), anchor) {
				t.Errorf("%s links to %s, and %s has no such heading", page, m[1], file)
			}
		}
	}
}

// anchors returns the names by which links can refer to a page's headings.
func anchors(page string) []string {
	var out []string
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(page, ""), -1) {
		out = append(out, strings.Map(func(r rune) rune {
			switch {
			case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_':
				return unicode.ToLower(r)
			case r == ' ':
				return '-'
			}
			return -1
		}, m[1]))
	}
	return out
}

func TestEveryPageIsLinked(t *testing.T) {
	t.Parallel()
	linked := map[string]bool{}
	for _, page := range list(t, ".md") {
		for _, m := range link.FindAllStringSubmatch(read(t, page), -1) {
			target, _, _ := strings.Cut(m[1], "#")
			linked[path.Join(path.Dir(page), target)] = true
		}
	}
	for _, page := range list(t, ".md") {
		if strings.HasPrefix(page, "docs/") && !linked[page] {
			t.Errorf("no page links to %s, so readers cannot find it", page)
		}
	}
}

// These patterns match commands in the docs. A command ends with its sentence.
var (
	typedMake   = regexp.MustCompile(`(?m)(?:^|\x60|\$ )make ([a-z][a-z-]+)`)
	typedPlugin = regexp.MustCompile(`\bkubectl hykube ([^\x60\n|#;)]+?)(?:\. [A-Z]|[\x60\n|#;)]|$)`)
	span        = regexp.MustCompile("`[^`\n]+`")
)

// snippets returns the code of a page: blocks of shell commands and output, and code within lines.
func snippets(page string) []string {
	out := span.FindAllString(fence.ReplaceAllString(page, ""), -1)
	for _, block := range fence.FindAllString(page, -1) {
		language, _, _ := strings.Cut(strings.TrimPrefix(block, "```"), "\n")
		if slices.Contains([]string{"", "sh", "console", "text"}, language) {
			out = append(out, block)
		}
	}
	return out
}

func TestCommandsInDocsExist(t *testing.T) {
	t.Parallel()
	targets := makeTargets(t)
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	plugin := cli.NewCommand(streams)
	seen := 0
	for _, page := range list(t, ".md") {
		if below(page, "docs/cli") {
			continue // generated from the commands themselves
		}
		for _, snippet := range snippets(read(t, page)) {
			for _, m := range typedMake.FindAllStringSubmatch(snippet, -1) {
				if seen++; !slices.Contains(targets, m[1]) {
					t.Errorf("%s says %q, and there is no such target", page, m[0])
				}
			}
			for _, m := range typedPlugin.FindAllStringSubmatch(snippet, -1) {
				seen++
				if problem := check(plugin, strings.Fields(m[1])); problem != "" {
					t.Errorf("%s says %q: %s", page, m[0], problem)
				}
			}
		}
	}
	if seen < 10 {
		t.Errorf("found only %d commands in the docs: the test looks in the wrong place", seen)
	}
}

// check returns the problem of a command of the plugin; "" if the command exists and has the flags.
func check(cmd *cobra.Command, words []string) string {
	if words[0] == strings.ToUpper(words[0]) || strings.HasPrefix(words[0], "-") {
		return "" // a placeholder, or help
	}
	for len(words) > 0 {
		i := slices.IndexFunc(cmd.Commands(), func(c *cobra.Command) bool { return c.Name() == words[0] })
		if i < 0 {
			break
		}
		cmd, words = cmd.Commands()[i], words[1:]
	}
	if !cmd.HasParent() {
		return "there is no such verb"
	}
	for _, word := range words {
		name, _, _ := strings.Cut(strings.Trim(word, "[]()"), "=")
		long, isLong := strings.CutPrefix(name, "--")
		switch {
		case isLong && long != "help" && cmd.Flags().Lookup(long) == nil && cmd.InheritedFlags().Lookup(long) == nil:
			return cmd.CommandPath() + " has no flag " + name
		case !isLong && len(name) == 2 && name[0] == '-' && cmd.Flags().ShorthandLookup(name[1:]) == nil && cmd.InheritedFlags().ShorthandLookup(name[1:]) == nil:
			return cmd.CommandPath() + " has no flag " + name
		}
	}
	return ""
}
