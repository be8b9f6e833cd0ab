package lang

import (
	"github.com/hykube/hykube/internal/schema/schematest"

	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The manual lists each function, and none that is not there.
func TestManualListsTheFunctions(t *testing.T) {
	b, err := os.ReadFile("../../docs/references.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), "## Functions\n")
	section, _, ok := strings.Cut(rest, "\n`base64gunzip`")
	if !ok {
		t.Fatal("no section on functions")
	}
	var listed []string
	for _, m := range regexp.MustCompile("`([a-z0-9]+)`").FindAllStringSubmatch(section, -1) {
		listed = append(listed, m[1])
	}
	slices.Sort(listed)
	schematest.SameStrings(t, listed, sortedKeys(builtins))
}
