package activities

import (
	"fmt"
	"testing"

	"github.com/hykube/hykube/internal/lang"
)

// TestObjectsAreParsedOncePerPlan counts the templates that a plan and its apply parse. Each object has one template in
// its spec, one in its lifecycle, and refers to the object before it.
func TestObjectsAreParsedOncePerPlan(t *testing.T) {
	sc := newCrashScenario(t)
	const objects, templates = 4, 2
	for i := range objects {
		spec := m{"name": `${upper("x")}`}
		if i > 0 {
			spec = m{"name": fmt.Sprintf("${test_thing.t%d.name}", i-1)}
		}
		sc.put(fmt.Sprintf("test-thing/t%d", i), spec, m{"postconditions": []any{
			map[string]any{"condition": `${self.name != ""}`, "errorMessage": "it has no name"},
		}})
	}
	run := sc.newRun()
	if err := sc.Index.Refresh(t.Context()); err != nil { // it parses each object once for each write
		t.Fatal(err)
	}
	before := lang.Parsed.Load()
	sc.until(run, approving)
	if n := lang.Parsed.Load() - before; n != objects*templates {
		t.Errorf("the plan parsed %d templates, want each of the %d once", n, objects*templates)
	}
	sc.until(run, beginning)
	before = lang.Parsed.Load()
	sc.until(run, stepping)
	begin := lang.Parsed.Load() - before
	sc.resume(run)
	if n := lang.Parsed.Load() - before - begin; n != objects*templates {
		t.Errorf("the steps parsed %d templates, want each of the %d once", n, objects*templates)
	}
	if begin > objects*templates {
		t.Errorf("the begin parsed %d templates, want each of the %d once at most", begin, objects*templates)
	}
	if !sc.recordOf("test-thing/t3").Exists() {
		t.Error("the plan was not applied")
	}
}
