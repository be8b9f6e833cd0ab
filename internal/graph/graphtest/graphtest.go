// Package graphtest generates random graphs for tests.
package graphtest

import (
	"slices"

	"pgregory.net/rapid"
)

// Draw returns a random graph. If acyclic is true, the graph has no cycles.
func Draw(t *rapid.T, acyclic bool) [][]int {
	n := rapid.IntRange(0, 30).Draw(t, "n")
	shuffled := rapid.Permutation(slices.Collect(func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	})).Draw(t, "shuffle")
	graph := make([][]int, n)
	for rank, i := range shuffled {
		high := n - 1
		if acyclic {
			high = rank - 1
		}
		if high < 0 {
			continue
		}
		for _, r := range rapid.SliceOfN(rapid.IntRange(0, high), 0, 3).Draw(t, "deps") {
			graph[i] = append(graph[i], shuffled[r])
		}
	}
	return graph
}
