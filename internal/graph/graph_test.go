package graph

import (
	"github.com/hykube/hykube/internal/graph/graphtest"

	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func depsOf(graph [][]int) func(int) []int { return func(i int) []int { return graph[i] } }

func TestOrder(t *testing.T) {
	for name, tc := range map[string]struct {
		graph        [][]int
		order, cycle []int
	}{
		"nothing":                               {nil, []int{}, nil},
		"independent things keep their order":   {[][]int{{}, {}, {}}, []int{0, 1, 2}, nil},
		"dependencies first":                    {[][]int{{1}, {2}, {}}, []int{2, 1, 0}, nil},
		"the same dependency twice":             {[][]int{{1, 1}, {}}, []int{1, 0}, nil},
		"what is not part of the work is done":  {[][]int{{7, -1}, {0}}, []int{0, 1}, nil},
		"itself":                                {[][]int{{}, {1}}, nil, []int{1}},
		"two":                                   {[][]int{{1}, {0}}, nil, []int{0, 1}},
		"behind a tail":                         {[][]int{{1}, {2}, {3}, {1}}, nil, []int{1, 2, 3}},
		"the shortest of several":               {[][]int{{1}, {2}, {3}, {0, 4}, {5}, {4}}, nil, []int{4, 5}},
		"the short cut":                         {[][]int{{1}, {2}, {3, 0}, {0}}, nil, []int{0, 1, 2}},
		"what depends on a cycle is not on it":  {[][]int{{1}, {2, 3}, {1}, {}}, nil, []int{1, 2}},
		"what a cycle depends on is not on it ": {[][]int{{}, {0, 2}, {1}}, nil, []int{1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			order, cycle := Order(len(tc.graph), depsOf(tc.graph))
			if diff := cmp.Diff(tc.order, order); diff != "" {
				t.Errorf("order (-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(tc.cycle, cycle); diff != "" {
				t.Errorf("cycle (-want +got)\n%s", diff)
			}
		})
	}
}

func TestCycleText(t *testing.T) {
	names := []string{"sim_a.x", "sim_b.y"}
	if got := CycleText([]int{0, 1}, func(i int) string { return names[i] }); got != "sim_a.x -> sim_b.y -> sim_a.x" {
		t.Error(got)
	}
	if got := CycleText(nil, nil); got != "" {
		t.Error(got)
	}
}

func TestOrderProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		graph := graphtest.Draw(rt, rapid.Bool().Draw(rt, "acyclic"))
		order, cycle := Order(len(graph), depsOf(graph))
		if cycle == nil {
			at := make(map[int]int, len(order))
			for k, i := range order {
				at[i] = k
			}
			if len(at) != len(graph) {
				rt.Fatalf("%d of %d are ordered", len(at), len(graph))
			}
			for i, deps := range graph {
				for _, d := range deps {
					if at[d] >= at[i] {
						rt.Fatalf("%d comes before its dependency %d", i, d)
					}
				}
			}
			return
		}
		for k, i := range cycle {
			if next := cycle[(k+1)%len(cycle)]; !slices.Contains(graph[i], next) {
				rt.Fatalf("%d does not depend on %d", i, next)
			}
		}
		if want := girth(graph); len(cycle) != want {
			rt.Fatalf("the shortest cycle has %d steps, got %v", want, cycle)
		}
	})
}

// girth is the length of the shortest cycle, the slow and obvious way.
func girth(graph [][]int) int {
	best := len(graph) + 1
	for root := range graph {
		dist := map[int]int{root: 0}
		for queue := []int{root}; len(queue) > 0; queue = queue[1:] {
			for _, d := range graph[queue[0]] {
				if d == root {
					best = min(best, dist[queue[0]]+1)
				}
				if _, ok := dist[d]; !ok {
					dist[d] = dist[queue[0]] + 1
					queue = append(queue, d)
				}
			}
		}
	}
	return best
}

func TestSelect(t *testing.T) {
	nodes := []Node{{}, {Deps: []int{0}, Changed: true}, {Deps: []int{1}}, {Deps: []int{2, 0}}, {Deps: []int{0}}}
	if diff := cmp.Diff([]int{1, 2, 3}, Select(nodes)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]int{0, 1, 2}, WithDependencies(nodes, []int{2})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got := Select(make([]Node, 3)); got != nil {
		t.Errorf("nothing changed, yet %v", got)
	}
	if got := WithDependencies(nodes, nil); got != nil {
		t.Errorf("no roots, yet %v", got)
	}
}

func TestTracker(t *testing.T) {
	// 0 <- 1 <- 2, 0 <- 3, 4 on its own
	graph := [][]int{{}, {0}, {1, 3}, {0}, {}}
	step := func(t *testing.T, tr *Tracker, want ...int) {
		t.Helper()
		if diff := cmp.Diff(want, tr.Ready()); diff != "" {
			t.Fatalf("ready (-want +got)\n%s", diff)
		}
	}
	t.Run("an item is ready as soon as its own dependencies are done", func(t *testing.T) {
		tr := NewTracker(5, depsOf(graph))
		step(t, tr, 0, 4)
		step(t, tr)
		tr.Done(0)
		step(t, tr, 1, 3)
		tr.Done(3)
		step(t, tr)
		tr.Done(1)
		tr.Done(1)
		step(t, tr, 2)
		tr.Done(2)
		tr.Done(4)
		if left(tr) != 0 {
			t.Errorf("%d left", left(tr))
		}
	})
	t.Run("a failure skips what depends on it, once", func(t *testing.T) {
		tr := NewTracker(5, depsOf(graph))
		step(t, tr, 0, 4)
		tr.Done(0)
		step(t, tr, 1, 3)
		if diff := cmp.Diff([]int{2}, tr.Fail(1)); diff != "" {
			t.Fatal(diff)
		}
		if skipped := tr.Fail(3); len(skipped) > 0 {
			t.Fatalf("skipped again: %v", skipped)
		}
		if skipped := tr.Fail(3); skipped != nil {
			t.Fatalf("failed twice: %v", skipped)
		}
		step(t, tr)
		if left(tr) != 1 {
			t.Errorf("%d left, want the independent one", left(tr))
		}
	})
	t.Run("a journal resumes it", func(t *testing.T) {
		tr := NewTracker(5, depsOf(graph))
		tr.Done(1) // before its dependency: the journal is not sorted
		tr.Done(0)
		tr.Fail(4)
		step(t, tr, 3)
		tr.Done(3)
		step(t, tr, 2)
	})
}

func TestTrackerProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		graph := graphtest.Draw(rt, true)
		tr := NewTracker(len(graph), depsOf(graph))
		done, ended, running := map[int]bool{}, map[int]bool{}, []int(nil)
		for left(tr) > 0 {
			for _, i := range tr.Ready() {
				for _, d := range graph[i] {
					if !done[d] {
						rt.Fatalf("%d is ready before %d is done", i, d)
					}
				}
				running = append(running, i)
			}
			if len(running) == 0 {
				rt.Fatalf("stuck with %d left", left(tr))
			}
			k := rapid.IntRange(0, len(running)-1).Draw(rt, "which")
			i := running[k]
			running = slices.Delete(running, k, k+1)
			if ended[i] {
				rt.Fatalf("%d ended twice", i)
			}
			ended[i] = true
			if rapid.IntRange(0, 4).Draw(rt, "outcome") > 0 {
				done[i] = true
				tr.Done(i)
				continue
			}
			for _, s := range tr.Fail(i) {
				if ended[s] || slices.Contains(running, s) {
					rt.Fatalf("%d is skipped though it was begun", s)
				}
				ended[s] = true
			}
		}
		if len(ended) != len(graph) {
			rt.Fatalf("%d of %d ended", len(ended), len(graph))
		}
	})
}

// estate is n resources that each depend on a network and on the one before them in their row of 100.
func estate(n int) func(int) []int {
	deps := make([][]int, n)
	for i := range n {
		if i%100 != 0 {
			deps[i] = []int{i - 1, i - i%100}
		}
	}
	return depsOf(deps)
}

func BenchmarkOrder(b *testing.B) {
	for name, n := range map[string]int{"100k": 100_000, "1M": 1_000_000} {
		b.Run(name, func(b *testing.B) {
			deps := estate(n)
			b.ReportAllocs()
			for b.Loop() {
				if order, _ := Order(n, deps); len(order) != n {
					b.Fatal("not ordered")
				}
			}
		})
	}
}

func BenchmarkOrderCycle(b *testing.B) {
	// One ring of 100,000: the worst for a search from every node.
	n := 100_000
	ring := make([][]int, n)
	for i := range n {
		ring[i] = []int{(i + 1) % n}
	}
	for b.Loop() {
		if _, cycle := Order(n, depsOf(ring)); len(cycle) != n {
			b.Fatal("no cycle")
		}
	}
}

func BenchmarkTracker(b *testing.B) {
	n := 100_000
	deps := estate(n)
	for b.Loop() {
		tr := NewTracker(n, deps)
		for left(tr) > 0 {
			for _, i := range tr.Ready() {
				tr.Done(i)
			}
		}
	}
}

// left counts the items that have not ended: neither done, nor failed, nor skipped.
func left(t *Tracker) int {
	n := 0
	for _, s := range t.state {
		if s < itemDone {
			n++
		}
	}
	return n
}
