package kinds

import (
	"fmt"
	"testing"

	"github.com/hykube/hykube/internal/lang"
)

// TestSimilarNames looks up more missing addresses than a validation finds similar names for.
func TestSimilarNames(t *testing.T) {
	typ := lang.Address{Namespace: "x", Type: "sim_network"}
	c := &check{near: map[lang.Address]string{}, names: map[lang.Address][]string{typ: {"network-of-a-team"}}}
	for round := range 2 { // the second round gets the cached names
		found := 0
		for i := range maxSimilar + 10 {
			missing := typ
			missing.Name = fmt.Sprintf("network%03x-a-team", i)
			if c.similarName(missing) == "network-of-a-team" {
				found++
			}
		}
		if found != maxSimilar {
			t.Errorf("round %d: %d names, want %d", round, found, maxSimilar)
		}
	}
}
