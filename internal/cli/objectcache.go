package cli

import (
	"context"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hykube/hykube/api/v1alpha1"
)

// objectKey names an object by its Terraform address.
type objectKey struct{ namespace, address string }

func keyOf(r v1alpha1.ObjectReference) objectKey {
	return objectKey{r.Namespace, addressOfKind(r.Kind, r.Name)}
}

// wantedObject is an object to read. The API version is empty when only its address is known.
type wantedObject struct {
	objectKey
	apiVersion, kind string
}

// objectCache reads objects, each once. What may not be read, or is not there, is nil.
type objectCache struct {
	*session
	known map[objectKey]*unstructured.Unstructured
	kinds []kind
}

func newObjectCache(s *session) *objectCache {
	return &objectCache{session: s, known: map[objectKey]*unstructured.Unstructured{}}
}

// listFrom is how many objects of a kind are worth a list of all of them.
const listFrom = 100

// read reads objects. Only the end of ctx is an error.
func (l *objectCache) read(ctx context.Context, want []wantedObject) error {
	type shelf struct {
		gvr       schema.GroupVersionResource
		namespace string
	}
	shelves := map[shelf][]wantedObject{}
	for _, w := range want {
		if _, ok := l.known[w.objectKey]; ok {
			continue
		}
		l.known[w.objectKey] = nil
		if gvr, ok := l.resourceOf(ctx, w); ok {
			at := shelf{gvr, w.namespace}
			shelves[at] = append(shelves[at], w)
		}
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	slots := make(chan struct{}, recordAtOnce)
	put := func(u *unstructured.Unstructured) {
		mu.Lock()
		defer mu.Unlock()
		l.known[objectKey{u.GetNamespace(), addressOf(u)}] = u
	}
	for at, ws := range shelves {
		if len(ws) >= listFrom {
			denied, err := l.eachObject(ctx, []kind{{gvr: at.gvr, kind: ws[0].kind}}, at.namespace, "", func(_ kind, u *unstructured.Unstructured) { put(u) })
			if err == nil && len(denied) == 0 {
				continue
			}
		}
		for _, w := range ws {
			t, err := parseTarget(w.address)
			if err != nil {
				continue
			}
			slots <- struct{}{}
			wg.Go(func() {
				defer func() { <-slots }()
				if u, err := l.resource(at.gvr, at.namespace).Get(ctx, t.name, metav1.GetOptions{}); err == nil {
					put(u)
				}
			})
		}
	}
	wg.Wait()
	return ctx.Err()
}

// resourceOf finds the resource of an object, also when only its address is known.
func (l *objectCache) resourceOf(ctx context.Context, w wantedObject) (schema.GroupVersionResource, bool) {
	if w.apiVersion != "" {
		gvr, _, err := l.mapping(schema.FromAPIVersionAndKind(w.apiVersion, w.kind))
		return gvr, err == nil
	}
	if l.kinds == nil {
		l.kinds, _ = l.resourceKinds(ctx)
	}
	i := slices.IndexFunc(l.kinds, func(k kind) bool { return k.kind == w.kind })
	if i < 0 {
		return schema.GroupVersionResource{}, false
	}
	return l.kinds[i].gvr, true
}

// dependencies are the addresses of all that an object refers to, directly or not, as Terraform's state has them.
func (l *objectCache) dependencies(ctx context.Context, of objectKey) ([]string, error) {
	seen := map[objectKey]bool{of: true}
	for next := []objectKey{of}; len(next) > 0; {
		var want []wantedObject
		for _, at := range next {
			u := l.known[at]
			if u == nil {
				continue
			}
			for _, r := range references(u) {
				t, err := parseTarget(r.address)
				if err != nil {
					continue
				}
				to := objectKey{at.namespace, t.address()}
				if t.namespace != "" {
					to.namespace = t.namespace
				}
				if !seen[to] {
					seen[to] = true
					want = append(want, wantedObject{objectKey: to, kind: t.kind()})
				}
			}
		}
		if err := l.read(ctx, want); err != nil {
			return nil, err
		}
		next = next[:0]
		for _, w := range want {
			next = append(next, w.objectKey)
		}
	}
	delete(seen, of)
	var out []string
	for at := range seen {
		a := at.address
		if at.namespace != of.namespace {
			a = "namespace." + at.namespace + "." + a
		}
		out = append(out, a)
	}
	slices.SortFunc(out, strings.Compare)
	return out, nil
}
