// Package suggest finds the known name that is nearest to a misspelled one.
package suggest

import "github.com/agext/levenshtein"

// maxLength bounds the names that are looked at, in bytes, and maxCandidates how many of the known ones: a hint is not worth
// the time that a namespace of a million names would take.
const (
	maxLength     = 128
	maxCandidates = 10_000
)

// Nearest is the known name with the least edit distance, the first of them in the alphabet; empty when all are too far.
func Nearest(name string, known []string) string {
	if len(name) > maxLength {
		return ""
	}
	limit := min(3, (len(name)+2)/3) + 1
	best := ""
	for _, k := range known[:min(len(known), maxCandidates)] {
		if d := len(k) - len(name); d > limit || -d > limit {
			continue
		}
		if d := levenshtein.Distance(name, k, nil); d < limit || d == limit && best != "" && k < best {
			best, limit = k, d
		}
	}
	return best
}
