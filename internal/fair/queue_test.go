package fair

import (
	"slices"
	"testing"
)

type write struct {
	key  string
	size int
}

func (w write) Size() (writes, bytes int) { return 100, w.size }

func TestKeysTakeTurns(t *testing.T) {
	q := NewQueue[write](512, 1000)
	add := func(key string, n, size int) {
		for range n {
			if !q.Add(key, write{key, size}) {
				t.Fatal("the queue is closed")
			}
		}
	}
	add("busy", 9, 1)
	add("quiet", 1, 1)
	add("large", 2, 995)
	if n := q.Len(); n != 12 {
		t.Errorf("%d requests wait, want 12", n)
	}
	q.Close()
	if q.Add("late", write{}) {
		t.Error("a closed queue took a request")
	}
	want := [][]string{{"busy", "quiet", "large", "busy"}, {"large", "busy", "busy", "busy", "busy"}, {"busy", "busy", "busy"}, nil}
	for i, want := range want {
		var got []string
		for _, r := range q.Next() {
			got = append(got, r.key)
		}
		if !slices.Equal(got, want) {
			t.Errorf("group %d has %v, want %v", i, got, want)
		}
	}
}
