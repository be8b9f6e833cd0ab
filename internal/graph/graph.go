// Package graph orders nodes that depend on each other. Nodes are the integers 0..n-1, so a hundred thousand of them
// need only a few allocations. The package finds cycles and reachable nodes, and returns each node as soon as its
// dependencies are done.
package graph

import (
	"slices"
	"strings"
)

// Edges is a directed graph over 0..n-1 in two flat slices, so that a hundred thousand nodes cost three
// allocations: the neighbours of i are to[at[i]:at[i+1]].
type Edges struct {
	at []int
	to []int
}

func (e *Edges) Of(i int) []int { return e.to[e.at[i]:e.at[i+1]] }

// Collect asks for everybody's dependencies once. What lies outside 0..n-1 is not part of the work and is left out.
func Collect(n int, deps func(i int) []int) *Edges {
	e := &Edges{at: make([]int, n+1)}
	for i := range n {
		for _, d := range deps(i) {
			if d >= 0 && d < n {
				e.to = append(e.to, d)
			}
		}
		e.at[i+1] = len(e.to)
	}
	return e
}

// Reverse turns every edge around.
func (e *Edges) Reverse() *Edges {
	n := len(e.at) - 1
	r := &Edges{at: make([]int, n+1), to: make([]int, len(e.to))}
	for _, d := range e.to {
		r.at[d+1]++
	}
	for i := range n {
		r.at[i+1] += r.at[i]
	}
	next := slices.Clone(r.at)
	for i := range n {
		for _, d := range e.Of(i) {
			r.to[next[d]] = i
			next[d]++
		}
	}
	return r
}

// Reach returns what can be reached from the roots, roots included, in ascending order.
func (e *Edges) Reach(roots []int) []int {
	n := len(e.at) - 1
	seen := make([]bool, n)
	var queue []int
	for _, r := range roots {
		if r >= 0 && r < n && !seen[r] {
			seen[r] = true
			queue = append(queue, r)
		}
	}
	for head := 0; head < len(queue); head++ {
		for _, d := range e.Of(queue[head]) {
			if !seen[d] {
				seen[d] = true
				queue = append(queue, d)
			}
		}
	}
	slices.Sort(queue)
	return queue
}

// Components numbers the strongly connected components: two nodes have the same number if there is a way from each
// to the other.
func (e *Edges) Components() []int {
	n := len(e.at) - 1
	// Nodes in the order in which a depth-first search leaves them, without recursion.
	left := make([]int, 0, n)
	next := make([]int, n)
	for i := range n {
		next[i] = -1
	}
	for root := range n {
		if next[root] >= 0 {
			continue
		}
		next[root] = 0
		for stack := []int{root}; len(stack) > 0; {
			i := stack[len(stack)-1]
			if next[i] == len(e.Of(i)) {
				left = append(left, i)
				stack = stack[:len(stack)-1]
				continue
			}
			d := e.Of(i)[next[i]]
			next[i]++
			if next[d] < 0 {
				next[d] = 0
				stack = append(stack, d)
			}
		}
	}
	// Against the edges, from the last that was left, nothing but its own component can be reached anew.
	back := e.Reverse()
	component := make([]int, n)
	for _, root := range slices.Backward(left) {
		if component[root] > 0 {
			continue
		}
		component[root] = root + 1
		for queue := []int{root}; len(queue) > 0; queue = queue[1:] {
			for _, d := range back.Of(queue[0]) {
				if component[d] == 0 {
					component[d] = root + 1
					queue = append(queue, d)
				}
			}
		}
	}
	return component
}

// Order sorts 0..n-1 so that everything comes after what it depends on, in time linear in nodes and
// dependencies. Equal input gives equal output, and without dependencies the order is 0..n-1. When there is a
// cycle, order is nil and cycle holds the ids along a short one: each depends on the next, and the last on the first.
// Dependencies outside 0..n-1 are ignored.
func Order(n int, deps func(i int) []int) (order, cycle []int) {
	forward := Collect(n, deps)
	backward := forward.Reverse()
	waiting := make([]int, n)
	order = make([]int, 0, n)
	for i := range n {
		waiting[i] = len(forward.Of(i))
		if waiting[i] == 0 {
			order = append(order, i)
		}
	}
	for head := 0; head < len(order); head++ {
		for _, d := range backward.Of(order[head]) {
			if waiting[d]--; waiting[d] == 0 {
				order = append(order, d)
			}
		}
	}
	if len(order) == n {
		return order, nil
	}
	return nil, shortestCycle(forward, waiting)
}

// shortestCycle looks for a cycle among the nodes whose waiting count is above zero: there is at least one. The
// shortest of all would take a search from every node, which is quadratic, so the searches share a budget that is
// linear in the graph; it always suffices for the first one.
func shortestCycle(forward *Edges, waiting []int) []int {
	n := len(waiting)
	// Every waiting node depends on one that waits too, so a walk along those must come back to itself.
	stuck := func(i int) bool { return waiting[i] > 0 }
	start := slices.IndexFunc(waiting, func(w int) bool { return w > 0 })
	at := make([]int, n)
	var walk []int
	for i := start; ; {
		if at[i] > 0 {
			walk = walk[at[i]-1:]
			break
		}
		walk = append(walk, i)
		at[i] = len(walk)
		deps := forward.Of(i)
		i = deps[slices.IndexFunc(deps, stuck)]
	}
	best := walk

	budget := 4*(n+len(forward.to)) + 1<<16
	from, depth, mark := make([]int, n), make([]int, n), make([]int, n)
	for root := 0; root < n && budget > 0 && len(best) > 1; root++ {
		if !stuck(root) {
			continue
		}
		queue := []int{root}
		mark[root], depth[root] = root+1, 1
	search:
		for head := 0; head < len(queue) && budget > 0; head++ {
			i := queue[head]
			if depth[i] >= len(best) {
				break
			}
			for _, d := range forward.Of(i) {
				budget--
				if d == root {
					best = make([]int, depth[i])
					for k, j := depth[i]-1, i; k >= 0; k, j = k-1, from[j] {
						best[k] = j
					}
					break search
				}
				if stuck(d) && mark[d] != root+1 {
					mark[d], depth[d], from[d] = root+1, depth[i]+1, i
					queue = append(queue, d)
				}
			}
		}
	}
	// Begin with the smallest id, so that the same cycle always reads the same.
	k := slices.Index(best, slices.Min(best))
	return slices.Concat(best[k:], best[:k])
}

// CycleText spells a cycle out: "sim_a.x -> sim_b.y -> sim_a.x".
func CycleText(cycle []int, name func(i int) string) string {
	if len(cycle) == 0 {
		return ""
	}
	parts := make([]string, 0, len(cycle)+1)
	for _, i := range cycle {
		parts = append(parts, name(i))
	}
	return strings.Join(append(parts, parts[0]), " -> ")
}

// Node is what Select needs to know of a resource.
type Node struct {
	// Changed is true when the resource must be looked at for its own sake.
	Changed bool
	// Deps are the indexes of what the resource depends on.
	Deps []int
}

// Select says which resources a plan visits: those that changed and everything that depends on them, directly
// or not, in ascending order. It is linear in nodes and dependencies.
func Select(nodes []Node) []int {
	var roots []int
	for i := range nodes {
		if nodes[i].Changed {
			roots = append(roots, i)
		}
	}
	if len(roots) == 0 {
		return nil
	}
	return collectNodes(nodes).Reverse().Reach(roots)
}

// WithDependencies returns the roots and everything that they depend on, directly or not, in ascending order: what a
// plan with targets looks at.
func WithDependencies(nodes []Node, roots []int) []int {
	if len(roots) == 0 {
		return nil
	}
	return collectNodes(nodes).Reach(roots)
}

func collectNodes(nodes []Node) *Edges {
	return Collect(len(nodes), func(i int) []int { return nodes[i].Deps })
}
