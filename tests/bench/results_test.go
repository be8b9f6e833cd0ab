package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestPageHasTheRecordedTable compares docs/performance.md with the recorded results.
func TestPageHasTheRecordedTable(t *testing.T) {
	page, err := os.ReadFile("../../docs/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("results/bench.json")
	if err != nil {
		t.Fatal(err)
	}
	var r results
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Measurements) == 0 {
		t.Error("results/bench.json has no measurements")
	}
	for _, want := range []string{r.caption(), r.table()} {
		if !strings.Contains(string(page), want) {
			t.Errorf("docs/performance.md lacks the following text of results/bench.json; run make bench:\n%s", want)
		}
	}
}

func TestWriteReplacesTheFormerTable(t *testing.T) {
	dir := t.TempDir()
	page := filepath.Join(dir, "page.md")
	if err := os.WriteFile(page, []byte("before\n"+tableBegin+"| former |\n"+tableEnd+"after\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := results{Date: "2026-01-02", Processors: 2}
	for _, n := range []int{1000, 10_000} {
		r.took(leafPlan, n, time.Duration(n)*time.Millisecond)
	}
	r.growth(leafPlan, 2)
	r.add(measurement{What: "memory", Value: 12, Unit: mib, AtMost: 20})
	if err := r.write(dir, page); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"before\n", "after\n", "| " + leafPlan + " | 1000 | 1.00 s |  |  |\n", "| " + leafPlan + " | 10000 | 10.0 s |  |  |\n",
		"10000 resources, as a multiple of 1000 |  | 10.0 × | at most 2.00 × | missed |\n", "| memory |  | 12.0 MiB | at most 20.0 MiB | met |\n",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(string(text), "former") {
		t.Errorf("the page has the former table:\n%s", text)
	}
	svg, err := os.ReadFile(filepath.Join(dir, "bench.svg"))
	if err != nil || !strings.Contains(string(svg), leafPlan) {
		t.Errorf("the plot lacks %q: %v", leafPlan, err)
	}
}
