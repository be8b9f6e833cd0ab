package diff

type operation int

const (
	keep operation = iota
	remove
	add
)

// edit is one step from a sequence to another; i and j are the places in the old and the new one.
type edit struct {
	op   operation
	i, j int
}

// alignLimit bounds the table of the longest common subsequence; beyond it the sequences are taken as replaced.
const alignLimit = 4 << 20

// align finds the shortest steps from a sequence of n to one of m elements.
func align(n, m int, same func(i, j int) bool) []edit {
	var head, tail []edit
	lo := 0
	for lo < n && lo < m && same(lo, lo) {
		head = append(head, edit{keep, lo, lo})
		lo++
	}
	hiN, hiM := n, m
	for hiN > lo && hiM > lo && same(hiN-1, hiM-1) {
		hiN, hiM = hiN-1, hiM-1
		tail = append(tail, edit{keep, hiN, hiM})
	}
	out := head
	rows, cols := hiN-lo, hiM-lo
	if rows*cols > alignLimit {
		for i := lo; i < hiN; i++ {
			out = append(out, edit{op: remove, i: i})
		}
		for j := lo; j < hiM; j++ {
			out = append(out, edit{op: add, j: j})
		}
	} else {
		// length[i][j] is the longest common subsequence of what is left from i and j on.
		length := make([][]int32, rows+1)
		for i := range length {
			length[i] = make([]int32, cols+1)
		}
		for i := rows - 1; i >= 0; i-- {
			for j := cols - 1; j >= 0; j-- {
				if same(lo+i, lo+j) {
					length[i][j] = length[i+1][j+1] + 1
				} else {
					length[i][j] = max(length[i+1][j], length[i][j+1])
				}
			}
		}
		i, j := 0, 0
		for i < rows || j < cols {
			switch {
			case i < rows && j < cols && same(lo+i, lo+j):
				out = append(out, edit{keep, lo + i, lo + j})
				i, j = i+1, j+1
			case i < rows && (j == cols || length[i+1][j] >= length[i][j+1]):
				out = append(out, edit{op: remove, i: lo + i})
				i++
			default:
				out = append(out, edit{op: add, j: lo + j})
				j++
			}
		}
	}
	for k := len(tail) - 1; k >= 0; k-- {
		out = append(out, tail[k])
	}
	return out
}
