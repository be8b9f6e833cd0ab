package plan

import (
	"context"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/addrs"
	"github.com/hykube/hykube/internal/cli/objects"
	"github.com/hykube/hykube/internal/cli/planapi"
	"github.com/hykube/hykube/internal/cli/record"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/openapi"
	"github.com/hykube/hykube/internal/terraformjson"
)

// terraformJSON prints a plan in the format of `terraform show -json`.
func (o *showOptions) terraformJSON(ctx context.Context, p *v1alpha1.Plan) error {
	t := terraformjson.New(p, p.PlanFailed(),
		planSource{&objectCache{Session: o.Session, known: map[objectKey]*unstructured.Unstructured{}}})
	for c, err := range planapi.Changes(ctx, o.Session, p) {
		if err != nil {
			return err
		}
		t.Add(c)
	}
	return t.Write(ctx, o.Out)
}

// planSource reads the objects of a plan with the user's rights.
type planSource struct{ *objectCache }

func (s planSource) Read(ctx context.Context, objects []v1alpha1.ObjectReference) error {
	var want []wantedObject
	for _, r := range objects {
		want = append(want, wantedObject{keyOf(r), r.APIVersion, r.Kind})
	}
	return s.read(ctx, want)
}

func (s planSource) Spec(r v1alpha1.ObjectReference) (spec map[string]any, dependsOn []string) {
	u := s.known[keyOf(r)]
	if u == nil || u.GetUID() != r.UID || u.GetGeneration() != r.Generation {
		return nil, nil
	}
	dependsOn, _, _ = unstructured.NestedStringSlice(u.Object, "lifecycle", "dependsOn")
	for i, name := range dependsOn {
		if t, err := addrs.Parse(name); err == nil {
			dependsOn[i] = t.Full()
		}
	}
	if spec, _ = u.Object["spec"].(map[string]any); spec == nil {
		spec = map[string]any{}
	}
	return spec, dependsOn
}

func (s planSource) Dependencies(ctx context.Context, r v1alpha1.ObjectReference) ([]string, error) {
	return s.dependencies(ctx, keyOf(r))
}

func (s planSource) Schemas(ctx context.Context, provider string) map[string]*openapi.Schema {
	doc, err := objects.ProviderSchema(ctx, s.objectCache.Session, provider)
	if err != nil {
		return nil // the output is useful without schemas
	}
	return doc.Kinds(provider)
}

func (s planSource) Provider(ctx context.Context, provider, namespace,
	config string) (v1alpha1.ProviderSpec, v1alpha1.ProviderConfigSpec) {
	var p v1alpha1.Provider
	if provider == "" || s.Hykube.Get().Resource("providers").Name(provider).Do(ctx).Into(&p) != nil {
		p = v1alpha1.Provider{}
	}
	var cfg v1alpha1.ProviderConfig
	if config == "" || s.Hykube.Get().Namespace(namespace).Resource("providerconfigs").Name(config).Do(ctx).Into(
		&cfg) != nil {
		cfg = v1alpha1.ProviderConfig{}
	}
	return p.Spec, cfg.Spec
}

// objectKey identifies an object by its Terraform address.
type objectKey struct{ namespace, address string }

func keyOf(r v1alpha1.ObjectReference) objectKey {
	return objectKey{r.Namespace, addrs.OfKind(r.Kind, r.Name)}
}

// wantedObject is an object to read. apiVersion is empty if only the address is known.
type wantedObject struct {
	objectKey
	apiVersion, kind string
}

// objectCache reads each object once. An object that does not exist, or that the user may not read, is nil.
type objectCache struct {
	*session.Session
	known map[objectKey]*unstructured.Unstructured
	kinds []session.Kind
}

// listFrom is the number of wanted objects of a kind from which a list replaces single reads.
const listFrom = 100

// read reads objects. It fails only if ctx ends.
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
	slots := make(chan struct{}, record.RecordAtOnce)
	put := func(u *unstructured.Unstructured) {
		mu.Lock()
		defer mu.Unlock()
		l.known[objectKey{u.GetNamespace(), addrs.Of(u)}] = u
	}
	for at, ws := range shelves {
		if len(ws) >= listFrom {
			denied, err := objects.EachResource(ctx, l.Session, []session.Kind{{GVR: at.gvr, Kind: ws[0].kind}},
				at.namespace, "", func(_ session.Kind, u *unstructured.Unstructured) { put(u) })
			if err == nil && len(denied) == 0 {
				continue
			}
		}
		for _, w := range ws {
			t, err := addrs.Parse(w.address)
			if err != nil {
				continue
			}
			slots <- struct{}{}
			wg.Go(func() {
				defer func() { <-slots }()
				if u, err := l.Resource(at.gvr, at.namespace).Get(ctx, t.Name, metav1.GetOptions{}); err == nil {
					put(u)
				}
			})
		}
	}
	wg.Wait()
	return ctx.Err()
}

// resourceOf returns the resource of an object, even if only the address is known.
func (l *objectCache) resourceOf(ctx context.Context, w wantedObject) (schema.GroupVersionResource, bool) {
	if w.apiVersion != "" {
		gvr, _, err := l.Mapping(schema.FromAPIVersionAndKind(w.apiVersion, w.kind))
		return gvr, err == nil
	}
	if l.kinds == nil {
		l.kinds, _ = l.ResourceKinds(ctx)
	}
	i := slices.IndexFunc(l.kinds, func(k session.Kind) bool { return k.Kind == w.kind })
	if i < 0 {
		return schema.GroupVersionResource{}, false
	}
	return l.kinds[i].GVR, true
}

// dependencies returns the addresses of an object's direct and indirect dependencies, as in Terraform's state.
func (l *objectCache) dependencies(ctx context.Context, of objectKey) ([]string, error) {
	seen := map[objectKey]bool{of: true}
	for next := []objectKey{of}; len(next) > 0; {
		var want []wantedObject
		for _, at := range next {
			u := l.known[at]
			if u == nil {
				continue
			}
			for _, r := range addrs.References(u) {
				t, err := addrs.Parse(r.Address)
				if err != nil {
					continue
				}
				to := objectKey{at.namespace, t.Address()}
				if t.Namespace != "" {
					to.namespace = t.Namespace
				}
				if !seen[to] {
					seen[to] = true
					want = append(want, wantedObject{objectKey: to, kind: t.Kind()})
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
