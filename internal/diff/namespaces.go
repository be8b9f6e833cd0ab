package diff

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// maxNamespaces is the maximum number of namespaces that InNamespaces names.
const maxNamespaces = 10

// InNamespaces formats the number of objects in each namespace, the largest numbers first: `12 in the namespace "prod",
// 3 in the namespace "test"`. It counts those of further namespaces together.
func InNamespaces(counts map[string]int) string {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	named := names[:min(len(names), maxNamespaces)]
	var parts []string
	for _, name := range named {
		parts = append(parts, fmt.Sprintf("%s in the namespace %q", Count(counts[name]), name))
	}
	if others := names[len(named):]; len(others) > 0 {
		rest := 0
		for _, name := range others {
			rest += counts[name]
		}
		parts = append(parts, fmt.Sprintf("%s in %s", Count(rest), Plural(len(others), "other namespace")))
	}
	return strings.Join(parts, ", ")
}
