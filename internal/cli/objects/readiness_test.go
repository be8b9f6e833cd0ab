package objects

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
)

// status explains each reason of resources that docs/waiting.md lists.
func TestStatusExplainsEveryReason(t *testing.T) {
	text, err := os.ReadFile("../../../docs/waiting.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rows, _ := strings.Cut(string(text), "| resource, data source, action |")
	rows, _, found := strings.Cut(rows, "## ")
	if !found || !strings.Contains(rows, v1alpha1.ReasonUndeleted) {
		t.Fatal("docs/waiting.md has no table of the reasons")
	}
	for _, m := range regexp.MustCompile("`(?:True |False )?([A-Z][A-Za-z]+)`").FindAllStringSubmatch(rows, -1) {
		if ReasonWords(m[1]) == m[1] {
			t.Errorf("no words for %s", m[1])
		}
	}
}
