package resource

import (
	"reflect"
	"sync"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// Decoder decodes the objects of one plan. The expressions of the resources that it knows, and of ephemeral resources, are parsed once.
type Decoder struct {
	catalog *catalog.Catalog

	mu    sync.Mutex
	known map[types.UID]*Resource
}

// NewDecoder returns a decoder that knows some resources already.
func NewDecoder(c *catalog.Catalog, known ...*Resource) *Decoder {
	d := &Decoder{catalog: c, known: make(map[types.UID]*Resource, len(known))}
	for _, r := range known {
		d.known[r.Ref.UID] = r
	}
	return d
}

// Decode decodes an object, as Of does.
func (d *Decoder) Decode(obj *unstructured.Unstructured) (*Resource, error) {
	r, err := Of(obj, d.catalog)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if known := d.known[r.Ref.UID]; known.writtenAs(r) {
		r.expressions = known.expressions
	} else if r.Mode == v1alpha1.ModeEphemeral { // each expression that refers to it decodes it again
		d.known[r.Ref.UID] = r
	}
	return r, nil
}

// writtenAs reports whether two resources, of which r may be nil, have the same expressions and the same schema.
func (r *Resource) writtenAs(other *Resource) bool {
	return r != nil && r.Ref.Namespace == other.Ref.Namespace && r.Address == other.Address && r.Schema == other.Schema &&
		reflect.DeepEqual(r.Object.Object["spec"], other.Object.Object["spec"]) &&
		reflect.DeepEqual(r.Object.Object["lifecycle"], other.Object.Object["lifecycle"])
}
