package resourceset

import (
	"encoding/hex"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/module"
)

// Owner is the stored object whose instances are virtual objects: a ResourceSet or a Module.
type Owner struct {
	Namespace, Name string
	UID             types.UID
	// Revision is as in Set.
	Revision int64
	Created  metav1.Time
	// Deleting is the time of the deletion mark; nil without one.
	Deleting *metav1.Time
	Labels   map[string]string
}

// metadata returns the metadata of an instance.
func (o *Owner) metadata(name string, uid types.UID, generation int64) map[string]any {
	metadata := map[string]any{
		"name": name, "namespace": o.Namespace, "uid": string(uid), "generation": generation, "resourceVersion": fmt.Sprint(o.Revision),
	}
	if !o.Created.IsZero() {
		metadata["creationTimestamp"] = o.Created.UTC().Format(timeFormat)
	}
	if len(o.Labels) > 0 {
		labels := make(map[string]any, len(o.Labels))
		for k, v := range o.Labels {
			labels[k] = v
		}
		metadata["labels"] = labels
	}
	if o.Deleting != nil {
		metadata["deletionTimestamp"] = o.Deleting.UTC().Format(timeFormat)
	}
	return metadata
}

// Block is an instance of a block in a Module.
type Block struct {
	*module.Set
	// Index is that of the instance in the set.
	Index int
	// APIVersion is that of the block's kind.
	APIVersion string
	// ProviderConfig is the name of its ProviderConfig; empty for the default one.
	ProviderConfig string
	// Content is the digest of what the instance can see; see module.Expansion.Digests.
	Content [32]byte
}

// Kind returns the kind of the block's objects.
func (b *Block) Kind() string { return b.Mode.KindOf(b.Type) }

// BlockUID returns the UID of an instance of a block in a Module.
func (o *Owner) BlockUID(b *Block) types.UID {
	return uidOf(o.UID, b.APIVersion, b.Kind(), b.AddressOf(b.Index).ObjectName())
}

// BlockObject returns the object of an instance of a block in a Module, without lifecycle.dependsOn. It shares the spec
// with all other instances of the block, so the caller must not change it.
func (o *Owner) BlockObject(b *Block) *unstructured.Unstructured {
	digest := b.Digest()
	lifecycle := maps.Clone(b.Template())
	if b.ProviderConfig != "" {
		lifecycle["providerConfig"] = b.ProviderConfig
	}
	name := b.AddressOf(b.Index).ObjectName()
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": b.APIVersion, "kind": b.Kind(), "spec": b.Spec,
		"metadata": o.metadata(name, o.BlockUID(b), generationOf(b.Content)),
		v1alpha1.FieldInstance: map[string]any{
			"set": o.Name, "setUID": string(o.UID), fieldModule: b.Module.Config.StaticPath(),
			"template": hex.EncodeToString(digest[:8]), fieldContent: hex.EncodeToString(b.Content[:]),
		},
	}}
	if len(lifecycle) > 0 {
		u.Object["lifecycle"] = lifecycle
	}
	return u
}
