package mutants

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/parser"
	"go/token"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	all    = flag.Bool("all", false, "run every mutant, and not a sample")
	sample = flag.Duration("sample", 40*time.Second, "how long to begin mutants of a sample")
	seed   = flag.Uint64("seed", 1, "what the sample is drawn with")
)

// patience is the maximum time of the tests of one mutant. No mutant may need it, because a test that hangs does not
// find the bug.
const patience = 3 * time.Minute

// mutant is one planted bug.
type mutant struct {
	// harm is a sentence about the harm.
	harm string
	// file is the path of the file in the repository.
	file string
	// old is a text that the file has exactly once, and new replaces it.
	old, new string
	// tests is a pattern of the tests that find the bug, as for go test -run. For tests of another package than the
	// file's, the package's path and a colon come first: "activities:TestX|TestY".
	tests string
}

// pkg returns the path of the package that has the tests.
func (m mutant) pkg() string {
	if pkg, _, ok := strings.Cut(m.tests, ":"); ok {
		return pkg
	}
	return path.Dir(m.file)
}

// pattern returns the pattern of the tests, without their package.
func (m mutant) pattern() string { return m.tests[strings.Index(m.tests, ":")+1:] }

// mutants lists all planted bugs.
func mutants() []mutant {
	return slices.Concat(intentMutants, approvalMutants, rightMutants)
}

// mutate returns the content of a mutant's file with the bug.
func (m mutant) mutate(root string) ([]byte, error) {
	src, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		return nil, err
	}
	if n := bytes.Count(src, []byte(m.old)); n != 1 {
		return nil, fmt.Errorf("%s holds the old text %d times, and it must be once: write down what the code is now\n%s", m.file, n, m.old)
	}
	out := bytes.Replace(src, []byte(m.old), []byte(m.new), 1)
	if path.Ext(m.file) == ".go" {
		_, err = parser.ParseFile(token.NewFileSet(), m.file, out, parser.SkipObjectResolution)
	}
	return out, err
}

// TestListIsTrue checks that the current code permits every mutant.
func TestListIsTrue(t *testing.T) {
	root := repository(t)
	harms := map[string]bool{}
	tests := map[string][]string{}
	for _, m := range mutants() {
		if harms[m.harm] || !strings.HasSuffix(m.harm, ".") || strings.Contains(m.harm, "/") {
			t.Errorf("%q: the harm must be a sentence of its own, without slashes", m.harm)
		}
		harms[m.harm] = true
		if _, err := m.mutate(root); err != nil {
			t.Errorf("%s: %v", m.harm, err)
		}
		if tests[m.pkg()] == nil {
			tests[m.pkg()] = testsOf(t, filepath.Join(root, m.pkg()))
		}
		// Otherwise a mutant whose test was renamed would count as not noticed.
		for name := range strings.SplitSeq(m.pattern(), "|") {
			if !slices.Contains(tests[m.pkg()], name) {
				t.Errorf("%s: %s has no test %s", m.harm, m.pkg(), name)
			}
		}
	}
}

// TestMutants plants bugs, one at a time. Without -all it draws a sample.
func TestMutants(t *testing.T) {
	root := repository(t)
	list := mutants()
	start := time.Now()
	if *all {
		for _, pkg := range slices.Sorted(maps.Keys(patterns(list))) {
			t.Run("unchanged/"+pkg, func(t *testing.T) {
				m := mutant{file: pkg + "/none.go", tests: strings.Join(patterns(list)[pkg], "|")}
				if out, err := m.run(t, root, nil); err != nil {
					t.Fatalf("the tests fail without a bug: %v\n%s", err, out)
				}
			})
		}
	} else {
		t.Logf("a sample; draw the same one with -seed %d, or run all with -all", *seed)
		rand.New(rand.NewPCG(*seed, 0)).Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	}
	for _, m := range list {
		if !*all && time.Since(start) > *sample {
			break
		}
		t.Run(m.pkg()+"/"+m.harm, func(t *testing.T) {
			src, err := m.mutate(root)
			if err != nil {
				t.Fatal(err)
			}
			out, err := m.run(t, root, src)
			switch {
			case err == nil:
				t.Errorf("the mutant survives: %s\n%s does not notice this edit of %s\n- %s\n+ %s", m.harm, m.tests, m.file, m.old, m.new)
			case bytes.Contains(out, []byte("panic: test timed out")):
				t.Errorf("the tests hang with the bug, and say nothing about it\n%s", out)
			default:
				t.Logf("found by %s", failed.FindAll(out, -1))
			}
		})
	}
}

// failed matches the names of failed tests, without their subtests.
var failed = regexp.MustCompile(`(?m)^--- FAIL: \w+`)

// run builds and runs the tests of a mutant's package. It returns the error of the tests. A package that does not
// compile ends t.
func (m mutant) run(t *testing.T, root string, src []byte) (out []byte, err error) {
	t.Helper()
	dir := t.TempDir()
	binary := filepath.Join(dir, "mutant.test")
	args := []string{"test", "-c", "-vet=off", "-ldflags=-w", "-o", binary}
	if src != nil {
		planted, overlay := filepath.Join(dir, "mutant.go"), filepath.Join(dir, "overlay.json")
		replace, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(root, m.file): planted}})
		if err = errors.Join(err, os.WriteFile(planted, src, 0o600), os.WriteFile(overlay, replace, 0o600)); err != nil {
			t.Fatal(err)
		}
		args = append(args, "-overlay", overlay)
	}
	build := exec.CommandContext(t.Context(), "go", append(args, ".")...)
	build.Dir = filepath.Join(root, m.pkg()) // api and sdk have modules of their own
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("it does not build, so no test has a say: %v\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience+30*time.Second)
	defer cancel()
	test := exec.CommandContext(ctx, binary, "-test.failfast", "-test.timeout", patience.String(), "-test.run", "^("+m.pattern()+")$")
	test.Dir = filepath.Join(root, m.pkg())
	return test.CombinedOutput()
}

// patterns returns the tests that the mutants of each package name.
func patterns(list []mutant) map[string][]string {
	out := map[string][]string{}
	for _, m := range list {
		for name := range strings.SplitSeq(m.pattern(), "|") {
			if !slices.Contains(out[m.pkg()], name) {
				out[m.pkg()] = append(out[m.pkg()], name)
			}
		}
	}
	return out
}

var testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)

// testsOf returns the names of the tests of a package.
func testsOf(t *testing.T, dir string) []string {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range testFunc.FindAllSubmatch(src, -1) {
			names = append(names, string(found[1]))
		}
	}
	return names
}

func repository(t *testing.T) string {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return root
}
