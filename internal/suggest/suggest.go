// Package suggest finds the known name that is most similar to a misspelled one.
package suggest

import "github.com/agext/levenshtein"

// maxLength is the maximum length of a name in bytes. maxCandidates is the number of known names that Nearest compares.
// They bound the time for a namespace with a million names.
const (
	maxLength     = 128
	maxCandidates = 10_000
)

// Nearest returns the known name with the smallest edit distance, the first of several in alphabetical order. It
// returns "" if no name is similar enough.
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
