package cli

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/openapi"
	"github.com/hykube/hykube/internal/terraformjson"
)

// terraformJSON prints a plan as `terraform show -json` does.
func (o *showOptions) terraformJSON(ctx context.Context, p *v1alpha1.Plan) error {
	t := terraformjson.New(p, planFailed(p), planSource{newObjectCache(o.session)})
	for c, err := range o.changes(ctx, p) {
		if err != nil {
			return err
		}
		t.Add(c)
	}
	return t.Write(ctx, o.Out)
}

// planSource reads the objects of a plan with the rights of the caller.
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
		if t, err := parseTarget(name); err == nil {
			dependsOn[i] = t.full()
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
	doc, err := s.providerDocument(ctx, provider)
	if err != nil {
		return nil // without them, the rest is still worth printing
	}
	return doc.Kinds(provider)
}

func (s planSource) Provider(ctx context.Context, provider, namespace, config string) (v1alpha1.ProviderSpec, v1alpha1.ProviderConfigSpec) {
	var p v1alpha1.Provider
	if provider == "" || s.hykube.Get().Resource("providers").Name(provider).Do(ctx).Into(&p) != nil {
		p = v1alpha1.Provider{}
	}
	var cfg v1alpha1.ProviderConfig
	if config == "" || s.hykube.Get().Namespace(namespace).Resource("providerconfigs").Name(config).Do(ctx).Into(&cfg) != nil {
		cfg = v1alpha1.ProviderConfig{}
	}
	return p.Spec, cfg.Spec
}
