package record

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/manifest"
	"github.com/hykube/hykube/internal/cli/session"
)

const (
	// listInstead is the number of objects of one kind and namespace from which on a list is faster than a request for
	// each.
	listInstead = 50
	// existingPage is the number of objects of one page of that list.
	existingPage = 500
)

// existingObject is an object as it was before it was recorded. It may have the metadata alone.
type existingObject interface {
	metav1.Object
	runtime.Object
}

// collection is the objects of a kind in a namespace.
type collection struct {
	gvr       schema.GroupVersionResource
	namespace string
}

// existingObjects holds the metadata of the objects that existed when a command began to record. It has the collections
// of which the command records many objects.
type existingObjects map[collection]map[string]*metav1.PartialObjectMetadata

// find returns the object of a name, or nil. listed is false if the collection was not listed.
func (e existingObjects) find(gvr schema.GroupVersionResource, namespace,
	name string) (obj existingObject, listed bool) {
	names, listed := e[collection{gvr, namespace}]
	if found := names[name]; found != nil {
		return found, listed
	}
	return nil, listed
}

// list returns the metadata of the objects that exist, for the collections of which ms has many. It omits the
// collections that the user may not list.
func (r *Recorder) list(ctx context.Context, ms []manifest.Manifest) (existingObjects, error) {
	wanted := map[collection]map[string]bool{}
	for _, m := range ms {
		if _, ok := v1alpha1.ProviderOfGroup(m.Object.GroupVersionKind().Group); !ok {
			continue // such an object may have no generation, so that its metadata would not show a change
		}
		gvr, _, err := r.Mapping(m.Object.GroupVersionKind())
		if err != nil {
			continue // recordOne waits for the kind
		}
		c := collection{gvr, cmp.Or(m.Object.GetNamespace(), r.Namespace)} // a provider's kinds have namespaces
		if wanted[c] == nil {
			wanted[c] = map[string]bool{}
		}
		wanted[c][m.Object.GetName()] = true
	}
	maps.DeleteFunc(wanted, func(_ collection, names map[string]bool) bool { return len(names) < listInstead })
	if len(wanted) == 0 {
		return nil, nil
	}
	client, err := metadata.NewForConfigAndClient(r.Config, r.HTTP)
	if err != nil {
		return nil, fmt.Errorf("make a client for metadata: %w", err)
	}
	out := existingObjects{}
	for c, names := range wanted {
		found, err := listNamed(ctx, client, c, names)
		if apierrors.IsForbidden(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", c.gvr.GroupResource(), r.Explain(err))
		}
		out[c] = found
	}
	return out, nil
}

// listNamed returns the metadata of the objects of a collection that have one of the names.
func listNamed(ctx context.Context, client metadata.Interface, c collection,
	names map[string]bool) (map[string]*metav1.PartialObjectMetadata, error) {
	found := map[string]*metav1.PartialObjectMetadata{}
	for options := (metav1.ListOptions{Limit: existingPage}); ; {
		page, err := client.Resource(c.gvr).Namespace(c.namespace).List(ctx, options)
		if options.Continue = session.RestOf(err); options.Continue != "" {
			continue
		}
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			one := &page.Items[i]
			if !names[one.Name] {
				continue
			}
			if !appliedClientSide(one) {
				one.ManagedFields = nil // only adopt needs them
			}
			found[one.Name] = one
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return found, nil
		}
	}
}

// before returns an object as it is before it is recorded; nil if there is none. It takes the object from the list if
// the collection was listed. Otherwise it gets the object, and returns the error of that request.
func (r *Recorder) before(ctx context.Context, gvr schema.GroupVersionResource, namespace, name string,
	from existingObjects) (obj existingObject, listed bool, err error) {
	if obj, listed = from.find(gvr, namespace, name); listed {
		return obj, true, nil
	}
	u, err := r.Resource(gvr, namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	return u, false, nil
}

// sameContent reports whether an apply changed only managed fields. These may change alone, as in the first apply of an
// object that another client created.
func sameContent(before existingObject, after *unstructured.Unstructured) bool {
	if before.GetResourceVersion() == after.GetResourceVersion() {
		return true
	}
	u, whole := before.(*unstructured.Unstructured)
	if !whole { // a change of anything else is a new generation
		return before.GetGeneration() == after.GetGeneration() && maps.Equal(before.GetLabels(), after.GetLabels()) &&
			maps.Equal(before.GetAnnotations(), after.GetAnnotations()) &&
			slices.Equal(before.GetFinalizers(), after.GetFinalizers()) &&
			equality.Semantic.DeepEqual(before.GetOwnerReferences(), after.GetOwnerReferences())
	}
	return sameObject(u, after)
}
