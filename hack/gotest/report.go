package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// event is an event of `go test -json`; see `go doc test2json`.
type event struct {
	Action, Package, ImportPath, Test, Output string
}

// report converts events to the output of `go test` without -json.
type report struct {
	out io.Writer
	// err is the first error of writing to out.
	err      error
	packages map[string]*pkg
	// reasons counts the skipped tests by reason.
	reasons map[string]int
}

// pkg holds the output of a package that its events have reported so far.
type pkg struct {
	// own is the output that belongs to no test. tests holds the output of each test that has neither passed nor been
	// skipped. order lists the names of these tests in the order of their first event.
	own   strings.Builder
	tests map[string]*strings.Builder
	order []string
}

func (r *report) print(text string) {
	if _, err := io.WriteString(r.out, text); r.err == nil {
		r.err = err
	}
}

func (r *report) add(e event) {
	if e.Action == "build-output" {
		r.print(e.Output)
		return
	}
	if e.Package == "" {
		return
	}
	p := r.packages[e.Package]
	if p == nil {
		p = &pkg{tests: map[string]*strings.Builder{}}
		r.packages[e.Package] = p
	}
	switch {
	case e.Test != "":
		r.addTest(p, e)
	case e.Action == "output":
		p.own.WriteString(e.Output)
	case e.Action == "fail":
		r.print(p.failures() + p.own.String())
		delete(r.packages, e.Package)
	case e.Action == "pass" || e.Action == "skip":
		own := strings.TrimSuffix(p.own.String(), "\n")
		r.print(own[strings.LastIndexByte(own, '\n')+1:] + "\n") // such as "ok  	a/b	0.012s"
		delete(r.packages, e.Package)
	}
}

func (r *report) addTest(p *pkg, e event) {
	out := p.tests[e.Test]
	if out == nil {
		out = &strings.Builder{}
		p.tests[e.Test] = out
		p.order = append(p.order, e.Test)
	}
	switch e.Action {
	case "output":
		switch text := out.String(); {
		case strings.HasPrefix(e.Output, "=== "):
		case strings.HasPrefix(strings.TrimSpace(e.Output), "--- FAIL: "):
			out.Reset()
			out.WriteString(e.Output + text)
		default:
			out.WriteString(e.Output)
		}
	case "skip":
		r.reasons[reason(out.String())]++
		out.Reset()
	case "pass":
		out.Reset()
	}
}

// failures returns the output of the tests that failed or did not end.
func (p *pkg) failures() string {
	var all strings.Builder
	for _, name := range p.order {
		all.WriteString(p.tests[name].String())
	}
	return all.String()
}

var logged = regexp.MustCompile(`(?m)^\s+\S+\.go:\d+: (.+)$`)

// reason returns the first line of the last message that a test logged.
func reason(output string) string {
	found := logged.FindAllStringSubmatch(output, -1)
	if len(found) == 0 {
		return "no reason given"
	}
	return found[len(found)-1][1]
}

// close prints the output of the packages that did not end, and then the line about skipped tests.
func (r *report) close() {
	for _, name := range slices.Sorted(maps.Keys(r.packages)) {
		r.print(r.packages[name].failures() + r.packages[name].own.String())
	}
	r.print(r.skipped() + "\n")
}

func (r *report) skipped() string {
	total := 0
	var parts []string
	reasons := slices.SortedFunc(maps.Keys(r.reasons), func(a, b string) int {
		return cmp.Or(cmp.Compare(r.reasons[b], r.reasons[a]), cmp.Compare(a, b))
	})
	for _, why := range reasons {
		total += r.reasons[why]
		parts = append(parts, fmt.Sprintf("%d × %s", r.reasons[why], why))
	}
	if total == 0 {
		return "No test was skipped."
	}
	return fmt.Sprintf("Skipped tests: %d. Reasons: %s.", total, strings.Join(parts, "; "))
}
