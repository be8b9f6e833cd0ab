// Package graph orders nodes that depend on each other. Nodes are the integers 0..n-1, so a hundred thousand of them
// need only a few allocations. The package finds cycles and reachable nodes, and returns each node as soon as its
// dependencies are done.
package graph

import (
	"slices"
	"strings"
)

// Edges is a directed graph over the nodes 0..n-1. It uses two flat slices, so that a hundred thousand nodes cost three
// allocations: the neighbours of i are to[at[i]:at[i+1]].
type Edges struct {
	at []int
	to []int
}

// Of returns the neighbours of node i.
func (e *Edges) Of(i int) []int { return e.to[e.at[i]:e.at[i+1]] }

// Collect calls deps once for each node. It ignores dependencies outside 0..n-1.
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

// Reverse returns the graph with each edge reversed.
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

// Reach returns the nodes that are reachable from the roots, including the roots, in ascending order.
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

// Components numbers the strongly connected components: two nodes have the same number if each is reachable from the
// other.
func (e *Edges) Components() []int {
	n := len(e.at) - 1
	// The nodes in depth-first post-order, computed without recursion.
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
	// In reverse post-order and against the edges, each search reaches exactly the rest of its component.
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

// Order sorts 0..n-1 topologically, so that each node follows its dependencies. It takes time linear in nodes and
// dependencies. Equal input gives equal output; without dependencies the order is 0..n-1. If there is a cycle, order is
// nil and cycle holds the nodes of a short one: each depends on the next, and the last on the first. Order ignores
// dependencies outside 0..n-1.
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

// shortestCycle returns a short cycle among the nodes whose waiting count is above zero, which include at least one. An
// exact search from every node would be quadratic. So the searches share a budget linear in the graph, which always
// suffices for the first one.
func shortestCycle(forward *Edges, waiting []int) []int {
	n := len(waiting)
	// Every waiting node depends on another waiting node, so a walk along such nodes must return to one that it has
	// visited.
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
	// Begin with the smallest number, so that the same cycle always gives the same text.
	k := slices.Index(best, slices.Min(best))
	return slices.Concat(best[k:], best[:k])
}

// CycleText formats a cycle: "sim_a.x -> sim_b.y -> sim_a.x".
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

// Node describes one resource to Select.
type Node struct {
	// Changed is true if the plan must visit the resource itself, and not only because of a dependency.
	Changed bool
	// Deps are the indexes of the resource's dependencies.
	Deps []int
}

// Select returns the resources that a plan visits, in ascending order: those that changed, and all their direct and
// indirect dependents. It is linear in nodes and dependencies.
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

// WithDependencies returns the roots and all their direct and indirect dependencies, in ascending order. These are the
// resources that a plan with targets visits.
func WithDependencies(nodes []Node, roots []int) []int {
	if len(roots) == 0 {
		return nil
	}
	return collectNodes(nodes).Reach(roots)
}

func collectNodes(nodes []Node) *Edges {
	return Collect(len(nodes), func(i int) []int { return nodes[i].Deps })
}
