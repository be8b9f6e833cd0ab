package repository

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// fewestThreats is the number of threats that docs/security.md must at least list with their tests.
const fewestThreats = 30

var (
	testName  = regexp.MustCompile("`(Test[A-Za-z0-9]+)`")
	storyName = regexp.MustCompile("`([a-z-]+\\.txtar)`")
	testFunc  = regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9]+)\(`)
)

// TestThreatsHaveTests checks that each threat in docs/security.md names a test or a story, and that all of them exist.
func TestThreatsHaveTests(t *testing.T) {
	t.Parallel()
	_, table, ok := strings.Cut(read(t, "docs/security.md"), "<!-- Table of threats: ")
	table, _, ended := strings.Cut(table, "<!-- End of the table of threats -->")
	if !ok || !ended {
		t.Fatal("docs/security.md has no table of threats between its comments")
	}
	tests, threats := testFuncs(t), 0
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 4 || strings.Trim(cells[0], " -#") == "" {
			continue
		}
		threats++
		names, stories := testName.FindAllStringSubmatch(cells[3], -1), storyName.FindAllStringSubmatch(cells[3], -1)
		if len(names)+len(stories) == 0 {
			t.Errorf("the threat %s names no test", strings.TrimSpace(cells[0]))
		}
		for _, name := range names {
			if !tests[name[1]] {
				t.Errorf("the threat %s names %s, which does not exist", strings.TrimSpace(cells[0]), name[1])
			}
		}
		for _, story := range stories {
			if _, err := os.Stat(filepath.Join(root, "tests/e2e/testdata", story[1])); err != nil {
				t.Errorf("the threat %s names a story: %v", strings.TrimSpace(cells[0]), err)
			}
		}
	}
	if threats < fewestThreats {
		t.Errorf("%d threats, want at least %d", threats, fewestThreats)
	}
}

// testFuncs returns the names of all test functions of the repository.
func testFuncs(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, file := range list(t, "_test.go") {
		for _, m := range testFunc.FindAllStringSubmatch(read(t, file), -1) {
			names[m[1]] = true
		}
	}
	return names
}
