package cli

import (
	"bufio"
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	dominikbraun "github.com/dominikbraun/graph"
)

// graph is what is drawn: resources and what they need. Edges point at what is needed first.
type graph struct {
	title string
	nodes []node
	edges [][2]int
	seen  map[[2]int]bool
}

type node struct {
	address string
	symbol  string
	// missing is true for what is referred to and isn't among the objects.
	missing bool
	// circle is true for what depends on itself through others; no plan can be made of it.
	circle bool
}

func (g *graph) add(n node) int {
	g.nodes = append(g.nodes, n)
	return len(g.nodes) - 1
}

func (g *graph) edge(from, to int) {
	e := [2]int{from, to}
	if g.seen == nil {
		g.seen = map[[2]int]bool{}
	}
	if !g.seen[e] {
		g.seen[e] = true
		g.edges = append(g.edges, e)
	}
}

func (g *graph) sorted() [][2]int {
	out := slices.Clone(g.edges)
	slices.SortFunc(out, func(a, b [2]int) int { return cmp.Or(a[0]-b[0], a[1]-b[1]) })
	return out
}

// findCircles marks the nodes that depend on themselves through others, and returns their addresses, one circle a line.
func (g *graph) findCircles() ([]string, error) {
	// The library takes the zero value for "none", so vertices count from 1.
	d := dominikbraun.New(dominikbraun.IntHash, dominikbraun.Directed())
	for i := range g.nodes {
		if err := d.AddVertex(i + 1); err != nil {
			return nil, fmt.Errorf("look for circles: %w", err)
		}
	}
	for _, e := range g.edges {
		if err := d.AddEdge(e[0]+1, e[1]+1); err != nil {
			return nil, fmt.Errorf("look for circles: %w", err)
		}
	}
	parts, err := dominikbraun.StronglyConnectedComponents(d)
	if err != nil {
		return nil, fmt.Errorf("look for circles: %w", err)
	}
	var circles []string
	for _, part := range parts {
		if len(part) < 2 {
			continue
		}
		var names []string
		for _, v := range part {
			g.nodes[v-1].circle = true
			names = append(names, g.nodes[v-1].address)
		}
		slices.Sort(names)
		circles = append(circles, strings.Join(names, ", "))
	}
	slices.Sort(circles)
	return circles, nil
}

// colour is a node's border, by what happens to it.
func (n node) colour() string {
	if n.circle {
		return "#8250df"
	}
	switch n.symbol {
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

func (n node) text() string {
	if strings.TrimSpace(n.symbol) != "" {
		return n.symbol + " " + n.address
	}
	return n.address
}

// dot writes Graphviz.
func (g *graph) dot(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "digraph %s {\n  rankdir = \"RL\"\n  node [shape = box, style = rounded, fontname = \"sans-serif\"]\n", dotQuote(g.title))
	for _, n := range g.nodes {
		extra := ""
		if n.missing {
			extra = ", style = dashed"
		}
		fmt.Fprintf(b, "  %s [label = %s, color = %q%s]\n", dotQuote(n.address), dotQuote(n.text()), n.colour(), extra)
	}
	for _, e := range g.sorted() {
		fmt.Fprintf(b, "  %s -> %s\n", dotQuote(g.nodes[e[0]].address), dotQuote(g.nodes[e[1]].address))
	}
	fmt.Fprintln(b, "}")
	return b.Flush()
}

func dotQuote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", " ").Replace(s) + `"`
}

// mermaid writes a Mermaid flowchart, as GitHub and GitLab show it in Markdown.
func (g *graph) mermaid(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintln(b, "flowchart RL")
	for i, n := range g.nodes {
		text := strings.NewReplacer(`"`, "#quot;", "\n", " ").Replace(n.text())
		fmt.Fprintf(b, "  n%d[\"%s\"]\n", i, text)
		fmt.Fprintf(b, "  style n%d stroke:%s%s\n", i, n.colour(), map[bool]string{true: ",stroke-dasharray: 4"}[n.missing])
	}
	for _, e := range g.sorted() {
		fmt.Fprintf(b, "  n%d --> n%d\n", e[0], e[1])
	}
	return b.Flush()
}

// layers puts every node one layer right of what it needs; a node in a cycle keeps the layer that it has when the
// cycle closes.
func (g *graph) layers() [][]int {
	needs, users, open := make([][]int, len(g.nodes)), make([][]int, len(g.nodes)), make([]int, len(g.nodes))
	for _, e := range g.sorted() {
		needs[e[0]] = append(needs[e[0]], e[1])
		users[e[1]] = append(users[e[1]], e[0])
		open[e[0]]++
	}
	depth, done := make([]int, len(g.nodes)), make([]bool, len(g.nodes))
	var queue []int
	for i := range g.nodes {
		if open[i] == 0 {
			queue = append(queue, i)
		}
	}
	for next := 0; ; {
		for ; len(queue) > 0; queue = queue[1:] {
			i := queue[0]
			if done[i] {
				continue
			}
			done[i] = true
			for _, u := range users[i] {
				if !done[u] {
					depth[u] = max(depth[u], depth[i]+1)
				}
				if open[u]--; open[u] == 0 {
					queue = append(queue, u)
				}
			}
		}
		for next < len(done) && done[next] {
			next++
		}
		if next == len(done) {
			break
		}
		queue = append(queue, next) // only cycles are left: open one
	}
	out := [][]int{}
	for i, d := range depth {
		for len(out) <= d {
			out = append(out, nil)
		}
		out[d] = append(out[d], i)
	}
	// Fewer crossings: each layer ordered by the middle of what its nodes need, a few times to and fro.
	place := make([]float64, len(g.nodes))
	number := func(l []int) {
		for k, i := range l {
			place[i] = float64(k) - float64(len(l))/2
		}
	}
	for _, l := range out {
		number(l)
	}
	sweep := func(l []int, near [][]int) {
		middle := func(i int) float64 {
			if len(near[i]) == 0 {
				return place[i]
			}
			sum := 0.0
			for _, j := range near[i] {
				sum += place[j]
			}
			return sum / float64(len(near[i]))
		}
		slices.SortStableFunc(l, func(a, b int) int { return cmp.Compare(middle(a), middle(b)) })
		number(l)
	}
	for range 4 {
		for k := 1; k < len(out); k++ {
			sweep(out[k], needs)
		}
		for k := len(out) - 2; k >= 0; k-- {
			sweep(out[k], users)
		}
	}
	return out
}

// svg draws the graph in layers from left to right: what is needed first stands left.
func (g *graph) svg(w io.Writer) error {
	const high, gapX, gapY, margin, letter = 30, 70, 16, 20, 7.3
	layers := g.layers()
	wide, x := make([]float64, len(layers)), make([]float64, len(layers))
	total, tallest := float64(margin), 0
	for k, l := range layers {
		for _, i := range l {
			wide[k] = max(wide[k], float64(len([]rune(g.nodes[i].text())))*letter+24)
		}
		x[k] = total
		total += wide[k] + gapX
		tallest = max(tallest, len(l))
	}
	width, height := max(total-gapX, margin)+margin, float64(tallest*(high+gapY)-gapY+2*margin)
	type box struct{ x, y, w float64 }
	boxes := make([]box, len(g.nodes))
	for k, l := range layers {
		top := (height - float64(len(l)*(high+gapY)-gapY)) / 2
		for r, i := range l {
			boxes[i] = box{x[k], top + float64(r*(high+gapY)), wide[k]}
		}
	}
	b := bufio.NewWriter(w)
	f := func(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" width="%s" height="%s" viewBox="0 0 %s %s" font-family="ui-monospace, Menlo, Consolas, monospace" font-size="12">`+"\n", f(width), f(height), f(width), f(height))
	fmt.Fprintf(b, "<title>%s</title>\n", xmlText(g.title))
	fmt.Fprintln(b, `<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse"><path d="M0 0 8 4 0 8z" fill="#8c959f"/></marker></defs>`)
	fmt.Fprintln(b, `<rect width="100%" height="100%" fill="#ffffff"/>`)
	for _, e := range g.sorted() {
		from, to := boxes[e[0]], boxes[e[1]]
		x1, y1, x2, y2 := from.x, from.y+high/2, to.x+to.w, to.y+high/2
		bend := max(20, (x1-x2)/2)
		fmt.Fprintf(b, `<path d="M%s %s C%s %s %s %s %s %s" fill="none" stroke="#8c959f" marker-end="url(#arrow)"/>`+"\n", f(x1), f(y1), f(x1-bend), f(y1), f(x2+bend), f(y2), f(x2), f(y2))
	}
	for i, n := range g.nodes {
		dash := ""
		if n.missing {
			dash = ` stroke-dasharray="4"`
		}
		fmt.Fprintf(b, `<g><rect x="%s" y="%s" width="%s" height="%d" rx="6" fill="#f6f8fa" stroke="%s" stroke-width="1.5"%s/><text x="%s" y="%s" fill="#1f2328">%s</text></g>`+"\n",
			f(boxes[i].x), f(boxes[i].y), f(boxes[i].w), high, n.colour(), dash, f(boxes[i].x+12), f(boxes[i].y+high/2+4), xmlText(n.text()))
	}
	fmt.Fprintln(b, "</svg>")
	return b.Flush()
}

func xmlText(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s))
	return b.String()
}
