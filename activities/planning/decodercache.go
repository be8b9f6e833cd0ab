package planning

import (
	"sync"
	"time"

	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/resource"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// keepDecoders is the time for which a worker keeps the resources of a survey. Propose follows at once, but may run
	// on another worker.
	keepDecoders = time.Minute
	// maxParsed is the maximum number of resources of one survey that a worker keeps, besides the ephemeral ones.
	// Propose parses the others again.
	maxParsed = 1000
)

// decoderCache caches decoders by plan UID between a Survey and its Propose, so that each object is parsed only once.
// After a restart it is empty, and Propose parses the objects again.
type decoderCache struct{ decoders sync.Map }

// keep stores the parsed resources of a survey.
func (s *decoderCache) keep(plan types.UID, c *catalog.Catalog, parsed []*resource.Resource) {
	kept := &keptDecoder{Decoder: resource.NewDecoder(c, parsed...)}
	kept.expire = time.AfterFunc(keepDecoders, func() { s.decoders.CompareAndDelete(plan, kept) })
	if old, ok := s.decoders.Swap(plan, kept); ok {
		old.(*keptDecoder).expire.Stop()
	}
}

// keptDecoder is a decoder that nothing has taken yet. Its timer refers to the resources, so it must be stopped.
type keptDecoder struct {
	*resource.Decoder
	expire *time.Timer
}

// take removes and returns the decoder of a plan, or returns a new one if this worker did not survey the plan.
func (s *decoderCache) take(plan types.UID, c *catalog.Catalog) *resource.Decoder {
	if d, ok := s.decoders.LoadAndDelete(plan); ok {
		kept := d.(*keptDecoder)
		kept.expire.Stop()
		return kept.Decoder
	}
	return resource.NewDecoder(c)
}
