package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestRun runs tests that pass, are skipped, fail, panic and do not build, and looks at what is printed and at the exit
// code.
func TestRun(t *testing.T) {
	module := map[string]string{
		"go.mod":    "module m\n\ngo 1.26\n",
		"pass/a.go": "package pass\n",
		"none/a.go": "package none\n",
		"pass/a_test.go": `package pass
import ("fmt"; "os"; "testing")
func TestMain(m *testing.M) { fmt.Println("noise"); os.Exit(m.Run()) }
func TestPass(t *testing.T) { t.Log("quiet") }
func TestSkip(t *testing.T) { t.Log("first"); t.Skip("no tool") }
func TestMany(t *testing.T) {
	for _, name := range []string{"a", "b"} { t.Run(name, func(t *testing.T) { t.Skip("left to another target\nfor a while") }) }
	t.Run("c", func(*testing.T) {})
}
func TestMute(t *testing.T) { t.SkipNow() }
`,
		"fail/a_test.go": `package fail
import "testing"
func TestPass(t *testing.T) { t.Log("quiet") }
func TestFail(t *testing.T) { t.Log("before"); t.Run("sub", func(t *testing.T) { t.Error("wrong") }) }
`,
		"panic/a_test.go": "package panic\n\nimport \"testing\"\n\nfunc TestPanic(*testing.T) { panic(\"at the disco\") }\n",
		"build/a_test.go": "package build\n\nfunc broken( {\n",
	}
	dir := t.TempDir()
	for name, text := range module {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	const skipped = "Skipped tests: 4. Reasons: 2 × left to another target; 1 × no reason given; 1 × no tool.\n"
	for _, tt := range []struct {
		reason   string
		packages []string
		code     int
		want     string // with * for times and lines in files
	}{
		{"a package that passes is one line", []string{"./none", "./pass"}, 0, "?   \tm/none\t[no test files]\nok  \tm/pass\t*\n" + skipped},
		{"the second time it is cached, and the skipped tests count again", []string{"./pass"}, 0, "ok  \tm/pass\t(cached)\n" + skipped},
		{"a failure is as go test prints it", []string{"./fail"}, 1,
			"--- FAIL: TestFail (*)\n    a_test.go:4: before\n--- FAIL: TestFail/sub (*)\n    a_test.go:4: wrong\nFAIL\nFAIL\tm/fail\t*\nNo test was skipped.\n"},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			var out, errOut strings.Builder
			code, err := run(append([]string{"-vet=off"}, tt.packages...), &out, &errOut)
			got := regexp.MustCompile(`[\d.]+s\b`).ReplaceAllString(out.String(), "*")
			if code != tt.code || err != nil || got != tt.want {
				t.Errorf("exit code %d, %v, and\n%s%s\nwant %d and\n%s", code, err, got, errOut.String(), tt.code, tt.want)
			}
		})
	}
	for reason, tt := range map[string]struct {
		args []string
		want string
	}{
		"a panic":                       {[]string{"./panic"}, "panic: at the disco"},
		"a package that does not build": {[]string{"./build", "./pass"}, "expected ')'"},
	} {
		t.Run(reason, func(t *testing.T) {
			var out strings.Builder
			code, err := run(append([]string{"-vet=off"}, tt.args...), &out, &out)
			if code == 0 || err != nil || !strings.Contains(out.String(), tt.want) {
				t.Errorf("exit code %d, %v; want another one than 0, and %q in\n%s", code, err, tt.want, out.String())
			}
		})
	}
}
