package ledger

import (
	"cmp"
	"slices"
)

// Share is the part of a limit that a process has, in units of the limit.
type Share struct {
	// Want is what the process needs.
	Want int64
	// Held is what the process may use. The parts of all processes together never exceed the limit.
	Held int64
	// Fair is what the process should hold at most: others wait for the rest.
	Fair int64
}

// Part is what a process needs and holds of a limit.
type Part struct {
	Process    string
	Want, Held int64
	// Turn orders the grants of a limit. A process that holds nothing keeps the turn of its last grant.
	Turn int64
}

// Grow grants the part of a process what it needs, up to its fair part, as far as the limit of total units has it.
// parts are those of all processes, or of the others. What the process holds beyond its fair part stays granted until
// it gives it back.
func (p Part) Grow(total int64, parts []Part) (grown Part, share Share) {
	free, last := total-p.Held, int64(0)
	others := slices.DeleteFunc(slices.Clone(parts), func(o Part) bool {
		last = max(last, o.Turn)
		if o.Process == p.Process {
			p.Turn = o.Turn
			return true
		}
		free -= o.Held
		return false
	})
	fair := p.fair(total, others)
	if more := min(fair-p.Held, free); more > 0 {
		if p.Held == 0 {
			p.Turn = last + 1
		}
		p.Held += more
	}
	return p, Share{Want: p.Want, Held: p.Held, Fair: fair}
}

// fair returns the part of a process if a limit is divided among those that need it: nobody gets more than it needs,
// and what it leaves is for the others. If there is less than a unit for each, they take turns: those that hold nothing
// come first, the one whose last turn is longest ago before the others; then those that hold a unit, the newest first.
func (p Part) fair(total int64, others []Part) int64 {
	all := slices.DeleteFunc(append(others, p), func(o Part) bool { return o.Want == 0 })
	if int64(len(all)) > total {
		slices.SortFunc(all, func(a, b Part) int {
			if a.Held > 0 && b.Held > 0 {
				return cmp.Compare(b.Turn, a.Turn)
			}
			return cmp.Or(cmp.Compare(min(a.Held, 1), min(b.Held, 1)), cmp.Compare(a.Turn, b.Turn),
				cmp.Compare(a.Process, b.Process))
		})
		all = all[:total]
		for i := range all {
			all[i].Want = 1
		}
	}
	slices.SortFunc(all, func(a, b Part) int {
		return cmp.Or(cmp.Compare(a.Want, b.Want), cmp.Compare(a.Process, b.Process))
	})
	for i, o := range all {
		given := min(o.Want, total/int64(len(all)-i))
		if o.Process == p.Process {
			return given
		}
		total -= given
	}
	return 0
}
