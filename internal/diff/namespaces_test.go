package diff

import (
	"fmt"
	"testing"
)

func TestInNamespaces(t *testing.T) {
	many := map[string]int{}
	for i := range 12 {
		many[fmt.Sprintf("n%02d", i)] = 1000 - i
	}
	for want, counts := range map[string]map[string]int{
		"": nil,
		`3 in the namespace "b", 1 in the namespace "a", 1 in the namespace "c"`: {"a": 1, "b": 3, "c": 1},
		`1,000 in the namespace "n00", 999 in the namespace "n01", 998 in the namespace "n02", 997 in the namespace "n03", 996 in the namespace "n04", ` +
			`995 in the namespace "n05", 994 in the namespace "n06", 993 in the namespace "n07", 992 in the namespace "n08", 991 in the namespace "n09", ` +
			`1,979 in 2 other namespaces`: many,
	} {
		if got := InNamespaces(counts); got != want {
			t.Errorf("%v: %s, want %s", counts, got, want)
		}
	}
}
