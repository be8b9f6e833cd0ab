// Package drawing renders dependency graphs of resources in Graphviz and Mermaid format. It imports internal/graph and
// knows no objects and no clients.
package drawing

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/hykube/hykube/internal/graph"
)

// Graph is a set of resources and their dependencies. An edge points from a resource to its dependency.
type Graph struct {
	Title string
	nodes []Node
	edges map[[2]int]bool
}

// Node is one resource of a Graph.
type Node struct {
	Address string
	// Symbol is the symbol of the resource's change, as in a plan.
	Symbol string
	// Missing is true for a referenced resource that does not exist.
	Missing bool
	// cyclic is true for a resource on a dependency cycle. Planning it fails.
	cyclic bool
}

// Len returns the number of nodes.
func (g *Graph) Len() int { return len(g.nodes) }

// Add adds a node and returns its number.
func (g *Graph) Add(n Node) int {
	g.nodes = append(g.nodes, n)
	return len(g.nodes) - 1
}

// Edge adds an edge between two nodes. It does nothing if the edge exists.
func (g *Graph) Edge(from, to int) {
	if g.edges == nil {
		g.edges = map[[2]int]bool{}
	}
	g.edges[[2]int{from, to}] = true
}

func (g *Graph) sorted() [][2]int {
	return slices.SortedFunc(maps.Keys(g.edges), func(a, b [2]int) int { return slices.Compare(a[:], b[:]) })
}

// From returns the graph of the node with an address and of all nodes that it depends on. If affected is true, it has
// all nodes that depend on that node instead. It returns false if no node has the address.
func (g *Graph) From(address string, affected bool) (*Graph, bool) {
	start := slices.IndexFunc(g.nodes, func(n Node) bool { return n.Address == address })
	if start < 0 {
		return nil, false
	}
	next := map[int][]int{}
	for _, e := range g.sorted() {
		from, to := e[0], e[1]
		if affected {
			from, to = to, from
		}
		next[from] = append(next[from], to)
	}
	found := map[int]bool{start: true}
	for todo := []int{start}; len(todo) > 0; todo = todo[1:] {
		for _, i := range next[todo[0]] {
			if !found[i] {
				found[i] = true
				todo = append(todo, i)
			}
		}
	}
	out, at := &Graph{Title: g.Title}, map[int]int{}
	for i, n := range g.nodes {
		if found[i] {
			at[i] = out.Add(n)
		}
	}
	for _, e := range g.sorted() {
		if found[e[0]] && found[e[1]] {
			out.Edge(at[e[0]], at[e[1]])
		}
	}
	return out, true
}

// Cycles marks the nodes on dependency cycles. It returns one text per strongly connected group, with the addresses in
// the group.
func (g *Graph) Cycles() []string {
	deps := make([][]int, len(g.nodes))
	for _, e := range g.sorted() {
		deps[e[0]] = append(deps[e[0]], e[1])
	}
	groups := map[int][]int{}
	for i, c := range graph.Collect(len(deps), func(i int) []int { return deps[i] }).Components() {
		groups[c] = append(groups[c], i)
	}
	var cycles []string
	for _, group := range groups {
		if len(group) < 2 {
			continue
		}
		var names []string
		for _, i := range group {
			g.nodes[i].cyclic = true
			names = append(names, g.nodes[i].Address)
		}
		slices.Sort(names)
		cycles = append(cycles, strings.Join(names, ", "))
	}
	slices.Sort(cycles)
	return cycles
}

// colour returns the colour of a node's border, by its change.
func (n Node) colour() string {
	if n.cyclic {
		return "#8250df"
	}
	switch n.Symbol {
	case "+":
		return "#2da44e"
	case "~":
		return "#bf8700"
	case "-":
		return "#cf222e"
	case "-/+", "+/-", "+/.":
		return "#bc4c00"
	case "<=", ">":
		return "#0969da"
	}
	return "#57606a"
}

func (n Node) text() string {
	if strings.TrimSpace(n.Symbol) != "" {
		return n.Symbol + " " + n.Address
	}
	return n.Address
}

// DOT writes the graph in Graphviz's DOT format.
func (g *Graph) DOT(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "digraph %s {\n  rankdir = \"RL\"\n  node [shape = box, style = rounded, fontname = \"sans-serif\"]\n", dotQuote(g.Title))
	for _, n := range g.nodes {
		extra := ""
		if n.Missing {
			extra = ", style = dashed"
		}
		fmt.Fprintf(b, "  %s [label = %s, color = %q%s]\n", dotQuote(n.Address), dotQuote(n.text()), n.colour(), extra)
	}
	for _, e := range g.sorted() {
		fmt.Fprintf(b, "  %s -> %s\n", dotQuote(g.nodes[e[0]].Address), dotQuote(g.nodes[e[1]].Address))
	}
	fmt.Fprintln(b, "}")
	return b.Flush()
}

func dotQuote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", " ").Replace(s) + `"`
}

// Mermaid writes a Mermaid flowchart, which GitHub and GitLab render in Markdown.
func (g *Graph) Mermaid(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintln(b, "flowchart RL")
	for i, n := range g.nodes {
		text := strings.NewReplacer(`"`, "#quot;", "\n", " ").Replace(n.text())
		fmt.Fprintf(b, "  n%d[\"%s\"]\n", i, text)
		fmt.Fprintf(b, "  style n%d stroke:%s%s\n", i, n.colour(),
			map[bool]string{true: ",stroke-dasharray: 4"}[n.Missing])
	}
	for _, e := range g.sorted() {
		fmt.Fprintf(b, "  n%d --> n%d\n", e[0], e[1])
	}
	return b.Flush()
}
