package ledger

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestPartsOfALimit has processes that need, use and give back random parts of a limit. Together they never hold more than the
// limit. Each one that needs something holds something at some time, and nothing is left that one needs.
func TestPartsOfALimit(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 0))
		total, parts := 1+random.Int64N(6), make([]Part, 1+random.IntN(5))
		for i := range parts {
			parts[i].Process = fmt.Sprint(i)
		}
		giveBack := true
		ask := func(i int) {
			p, share := parts[i].Grow(total, parts)
			parts[i] = p
			var held int64
			for _, p := range parts {
				held += p.Held
			}
			if held > total {
				t.Fatalf("seed %d: %v hold %d of %d", seed, parts, held, total)
			}
			if share.Held != p.Held || share.Fair > total {
				t.Fatalf("seed %d: %+v of %+v", seed, share, p)
			}
			if giveBack {
				parts[i].Held = min(p.Held, max(share.Fair, random.Int64N(p.Held+1))) // some of its calls go on
			}
		}
		for range 50 {
			i := random.IntN(len(parts))
			parts[i].Want = random.Int64N(10)
			ask(i)
		}
		giveBack = false
		got, needed := map[int]bool{}, int64(0)
		for round := range 100 {
			for _, i := range random.Perm(len(parts)) {
				ask(i)
				got[i] = got[i] || parts[i].Held > 0 || parts[i].Want == 0
				_, share := parts[i].Grow(total, parts)
				parts[i].Held = min(parts[i].Held, share.Fair)
			}
			if round == 0 {
				for _, p := range parts {
					needed += p.Want
				}
			}
		}
		var held int64
		for i, p := range parts {
			ask(i)
			held += parts[i].Held
			if !got[i] {
				t.Errorf("seed %d: %v never got a part of %d: %v", seed, p, total, parts)
			}
		}
		if held < min(total, needed) && int64(len(parts)) <= total {
			t.Errorf("seed %d: %v hold %d of %d", seed, parts, held, total)
		}
	}
}

// TestFairParts divides limits.
func TestFairParts(t *testing.T) {
	part := func(process string, want, held, turn int64) Part {
		return Part{Process: process, Want: want, Held: held, Turn: turn}
	}
	for name, tt := range map[string]struct {
		total int64
		own   Part
		parts []Part
		want  Share
	}{
		"alone":                        {10, part("a", 16, 0, 0), nil, Share{16, 10, 10}},
		"little need":                  {10, part("a", 3, 0, 0), nil, Share{3, 3, 3}},
		"the other one needs nothing":  {10, part("a", 16, 0, 0), []Part{part("b", 0, 0, 1)}, Share{16, 10, 10}},
		"the other one holds all":      {10, part("a", 16, 0, 0), []Part{part("b", 16, 10, 1)}, Share{16, 0, 5}},
		"it gives back":                {10, part("b", 16, 10, 0), []Part{part("a", 16, 0, 0)}, Share{16, 10, 5}},
		"the other one needs little":   {10, part("a", 16, 0, 0), []Part{part("b", 2, 2, 1)}, Share{16, 8, 8}},
		"a unit for three":             {1, part("a", 4, 0, 3), []Part{part("b", 4, 0, 2), part("c", 4, 0, 4)}, Share{4, 0, 0}},
		"its turn":                     {1, part("a", 4, 0, 1), []Part{part("b", 4, 0, 2), part("c", 4, 0, 4)}, Share{4, 1, 1}},
		"another waits for the unit":   {1, part("a", 4, 1, 1), []Part{part("b", 4, 0, 2)}, Share{4, 1, 0}},
		"the newest of two stays":      {2, part("a", 4, 1, 3), []Part{part("b", 4, 1, 2), part("c", 4, 0, 1)}, Share{4, 1, 1}},
		"the oldest of two gives back": {2, part("a", 4, 1, 2), []Part{part("b", 4, 1, 3), part("c", 4, 0, 1)}, Share{4, 1, 0}},
	} {
		parts := append(tt.parts, tt.own)
		if _, got := tt.own.Grow(tt.total, parts); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}
