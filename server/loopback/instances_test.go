package loopback

import (
	"math"
	"testing"

	"github.com/hykube/hykube/internal/index"
)

// TestPageBeyondTheLastInstance asks for a page from positions that no set has, as a client can in its token.
func TestPageBeyondTheLastInstance(t *testing.T) {
	for _, from := range []int{1, math.MaxInt} {
		for u, err := range (&Objects{}).instancesOf(t.Context(), index.SetInstances{}, from, 1) {
			t.Errorf("from %d: %v, %v", from, u, err)
		}
	}
}
