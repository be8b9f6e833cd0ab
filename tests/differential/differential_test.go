package differential

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hykube/hykube/tests/harness/machine"
)

var (
	long  = flag.Bool("long", false, "tell every hand-written story, not only the short ones")
	cases = flag.Int("cases", 5, "how many generated stories to tell")
	hide  = flag.String("hide", "", "regular expression: differences at paths that it matches are not shown, to see the others")
	seed  = flag.Int64("seed", 1, "seed of the first generated story; the next ones count up")
	// shapes are stories of generated types.
	shapes = flag.Int("shapes", 0, "how many stories of generated types to run, from the same seed on; 0 runs some well-known ones")
)

// TestMain sets shared before any test. It is nil without Terraform.
var shared *fixture

func TestMain(m *testing.M) {
	flag.Parse()
	terraform := machine.TerraformOrTofu.Path()
	if terraform == "" {
		os.Exit(m.Run()) // the tests report that they did not run
	}
	f, err := newFixture(terraform)
	code := 1
	if err != nil {
		fmt.Fprintln(os.Stderr, "differential:", err)
	} else {
		shared = f
		if err := flag.Set("test.parallel", strconv.Itoa(max(atOnce, runtime.GOMAXPROCS(0)))); err != nil {
			fmt.Fprintln(os.Stderr, "differential:", err)
		}
		code = m.Run()
	}
	if f != nil {
		if err := f.Remove(); err != nil {
			fmt.Fprintln(os.Stderr, "differential:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// atOnce is the number of stories that run concurrently. They wait for half of their time.
const atOnce = 4

func TestHandWritten(t *testing.T) {
	stories, err := readStories("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, st := range stories {
		t.Run(st.name, func(t *testing.T) {
			if !*long && !st.Short {
				t.Skip("left to make test-differential")
			}
			machine.TerraformOrTofu.Need(t)
			t.Parallel()
			if st.Open == "" {
				tell(t, st)
				return
			}
			if told := compareAll(t, st); len(told) == 0 {
				t.Errorf("%s no longer differs: take its open away (%s)", st.name, st.Open)
			} else {
				t.Skipf("STILL DIFFERS: %s", st.Open)
			}
		})
	}
}

var counter atomic.Int64

// tell runs a story, and fails if the sides differ.
func tell(t *testing.T, st *story) {
	t.Helper()
	for _, text := range compareAll(t, st) {
		t.Error(text)
	}
}

// compareAll runs a story on both sides concurrently, and compares them after each step. It reports each step that ends
// differently. It stops after the first step with different infrastructure, because all later steps would differ, too.
func compareAll(t *testing.T, st *story) (reports []string) {
	t.Helper()
	ctx := t.Context()
	number := counter.Add(1)
	dir := filepath.Join(shared.Dir, fmt.Sprintf("story-%d", number))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	tf, err := newTerraform(shared, st, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer stopQuietly(t, tf.stop)
	hy, err := newHykube(ctx, shared, st, fmt.Sprintf("story-%d", number))
	if err != nil {
		t.Fatal(err)
	}
	defer stopQuietly(t, hy.cloud.Stop)
	remembered := newMemory()
	var c config
	for i, s := range st.Steps {
		c = s.next(c)
		a, b, err := both(ctx, s, c, tf, hy)
		if err != nil {
			t.Fatalf("%s, step %d (%s): %v\n%s", st.name, i+1, s.What, err, rendered(c))
		}
		differences := judge(s, c, remembered, a, b)
		if *hide != "" {
			differences = slices.DeleteFunc(differences, func(d difference) bool { return regexp.MustCompile(*hide).MatchString(d.path) })
		}
		if len(differences) > 0 {
			reports = append(reports, fmt.Sprintf("%s: %s\nstep %d of %d (%s) ends differently:\n%s\n%s", st.name, st.What, i+1, len(st.Steps), s.What, listed(differences), report(t, st, i, c, a, b)))
			if slices.ContainsFunc(differences, func(d difference) bool { return !strings.HasPrefix(d.path, "plan/") }) {
				break
			}
		}
		if remembered.diverged {
			t.Logf("%s ends after step %d of %d (%s): an old instance waited for a new dependency, and the apply failed", st.name, i+1, len(st.Steps), s.What)
			break
		}
	}
	return reports
}

func stopQuietly(t *testing.T, stop func() error) {
	if err := stop(); err != nil {
		t.Errorf("stop cloud: %v", err)
	}
}

// both runs a step on both sides concurrently.
func both(ctx context.Context, s *step, c config, tf *terraform, hy *hykube) (a, b *outcome, err error) {
	var wg sync.WaitGroup
	var errA, errB error
	wg.Go(func() { a, errA = tf.play(ctx, s, c) })
	wg.Go(func() { b, errB = hy.play(ctx, s, c) })
	wg.Wait()
	if errA != nil {
		return nil, nil, fmt.Errorf("terraform's side: %w", errA)
	}
	if errB != nil {
		return nil, nil, fmt.Errorf("hykube's side: %w", errB)
	}
	return a, b, nil
}

func listed(differences []difference) string {
	var out []string
	for i, d := range differences {
		if i == 30 {
			out = append(out, fmt.Sprintf("  and %d more", len(differences)-i))
			break
		}
		out = append(out, "  - "+d.String())
	}
	return strings.Join(out, "\n")
}

// report prints the steps that led to a difference, and writes both outcomes to files.
func report(t *testing.T, st *story, at int, c config, a, b *outcome) string {
	var out strings.Builder
	for side, o := range map[string]*outcome{"terraform": a, "hykube": b} {
		for what, text := range map[string]string{"plan": o.PlanError, "apply": o.ApplyError} {
			if text != "" {
				fmt.Fprintf(&out, "%s's %s failed: %s\n", side, what, shorten(text))
			}
		}
	}
	out.WriteString("The steps so far:\n")
	for _, s := range st.Steps[:at+1] {
		data, _ := json.Marshal(s) // it was JSON before
		fmt.Fprintf(&out, "  %s\n", data)
	}
	for name, v := range map[string]any{"terraform.json": a, "hykube.json": b} {
		data, err := json.MarshalIndent(v, "", "  ")
		if err == nil {
			err = os.WriteFile(filepath.Join(t.ArtifactDir(), name), data, 0o600)
		}
		if err != nil {
			fmt.Fprintf(&out, "write %s: %v\n", name, err)
		}
	}
	if err := os.WriteFile(filepath.Join(t.ArtifactDir(), "main.tf.json"), []byte(rendered(c)), 0o600); err != nil {
		fmt.Fprintf(&out, "write main.tf.json: %v\n", err)
	}
	fmt.Fprintf(&out, "Both outcomes, and main.tf.json, are in %s (kept with go test -artifacts)\n", t.ArtifactDir())
	return out.String()
}

// shorten removes the output that every run of Terraform has.
func shorten(text string) string {
	text, _, _ = strings.Cut(text, "Warning: Provider development overrides")
	return strings.TrimSpace(text)
}

// rendered returns a configuration in Terraform's form.
func rendered(c config) string {
	text, err := c.terraform(shared.sources, "http://CLOUD", "DIRECTORY")
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func TestGenerated(t *testing.T) {
	machine.TerraformOrTofu.Need(t)
	types, err := shared.schemas()
	if err != nil {
		t.Fatal(err)
	}
	for name := range vocabulary() {
		if types[name] == nil {
			t.Errorf("the vocabulary speaks of %s, which no provider has", name)
		}
	}
	for i := range *cases {
		seed := *seed + int64(i)
		t.Run(fmt.Sprintf("seed-%d", seed), func(t *testing.T) {
			t.Parallel()
			tell(t, generate(seed, types))
		})
	}
}

// TestShapes runs stories of generated types; see tests/conformance/shape.
func TestShapes(t *testing.T) {
	for _, seed := range shapeSeeds() {
		t.Run(fmt.Sprintf("seed-%d", seed), func(t *testing.T) {
			machine.TerraformOrTofu.Need(t)
			t.Parallel()
			tell(t, generateShapes(seed))
		})
	}
}

// shapeSeeds returns the seeds of the stories of generated types: those of the flag, or some that together cover all
// nesting modes, both protocols, drift, a replacement, an import, and a secret in a value that planning does not know.
func shapeSeeds() (out []int64) {
	if *shapes == 0 {
		return []int64{1, 4, 11, 21, 86}
	}
	for i := range *shapes {
		out = append(out, *seed+int64(i))
	}
	return out
}
