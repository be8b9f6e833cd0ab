package e2e

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestMetricsAreDocumented expects docs/metrics.md to list each metric of Hykube that the server of the stories has.
func TestMetricsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := shared.Client().Get().AbsPath("/metrics").Do(t.Context()).Raw()
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`(?m)^# TYPE (hykube_[a-z_]+) `).FindAllStringSubmatch(string(metrics), -1)
	if len(names) < 8 {
		t.Fatalf("the server has only %d metrics of its own: %q", len(names), names)
	}
	for _, name := range names {
		if !strings.Contains(string(page), "| `"+name[1]+"` |") {
			t.Errorf("docs/metrics.md lacks %s", name[1])
		}
	}
}
