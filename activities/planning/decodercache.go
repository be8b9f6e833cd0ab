package planning

import (
	"sync"
	"time"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/resource"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// keepDecoders is the time for which a worker keeps the resources of a survey. Propose follows at once, but may run
	// on another worker.
	keepDecoders = time.Minute
	// maxDecoded is the maximum number of resources of one survey that a worker keeps. Propose parses the others
	// again.
	maxDecoded = 10_000
)

// decoderCache caches decoders by plan UID between a Survey and its Propose, so that each object is parsed only once. After
// a restart it is empty, and Propose parses the objects again.
type decoderCache struct{ decoders sync.Map }

// keep stores the resources that a plan visits, and all ephemeral resources, to which they may refer.
func (s *decoderCache) keep(plan types.UID, c *catalog.Catalog, nodes []*node, visited []int) {
	var known []*resource.Resource
	for _, i := range visited {
		if len(known) < maxDecoded {
			known = append(known, nodes[i].Resource)
		}
	}
	for _, n := range nodes {
		if n.Mode == v1alpha1.ModeEphemeral {
			known = append(known, n.Resource)
		}
	}
	d := resource.NewDecoder(c, known...)
	s.decoders.Store(plan, d)
	time.AfterFunc(keepDecoders, func() { s.decoders.CompareAndDelete(plan, d) })
}

// take removes and returns the decoder of a plan, or returns a new one if this worker did not survey the plan.
func (s *decoderCache) take(plan types.UID, c *catalog.Catalog) *resource.Decoder {
	if d, ok := s.decoders.LoadAndDelete(plan); ok {
		return d.(*resource.Decoder)
	}
	return resource.NewDecoder(c)
}
