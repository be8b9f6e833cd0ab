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
	// keepSurveyed is how long a worker keeps the resources of a survey. Propose follows at once, unless another worker runs it.
	keepSurveyed = time.Minute
	// maxSurveyed bounds the resources of one survey that a worker keeps. Propose parses the others again.
	maxSurveyed = 10_000
)

// surveyed holds decoders, by the UIDs of plans, between a survey and its Propose, so that a plan parses each object once. It is empty
// after a restart, and then Propose parses the objects again.
type surveyed struct{ decoders sync.Map }

// keep holds on to the resources that a plan visits, and to the ephemeral ones, which those may refer to.
func (s *surveyed) keep(plan types.UID, c *catalog.Catalog, nodes []*node, visited []int) {
	var known []*resource.Resource
	for _, i := range visited {
		if len(known) < maxSurveyed {
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
	time.AfterFunc(keepSurveyed, func() { s.decoders.CompareAndDelete(plan, d) })
}

// take returns the decoder of a plan, which knows nothing when this worker did not survey the plan.
func (s *surveyed) take(plan types.UID, c *catalog.Catalog) *resource.Decoder {
	if d, ok := s.decoders.LoadAndDelete(plan); ok {
		return d.(*resource.Decoder)
	}
	return resource.NewDecoder(c)
}
