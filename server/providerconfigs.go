package server

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/server/storage"
)

// providerConfigs returns the provider of the named ProviderConfig of a namespace, by its name. Where there is none of the name, it
// returns all of the namespace.
func providerConfigs(stored *storage.Objects) func(ctx context.Context, namespace, name string) (map[string]string, error) {
	return func(ctx context.Context, namespace, name string) (map[string]string, error) {
		providers := map[string]string{}
		add := func(u *unstructured.Unstructured) {
			providers[u.GetName()], _, _ = unstructured.NestedString(u.Object, "spec", "provider")
		}
		cfg, err := stored.Get(ctx, v1alpha1.Resource("providerconfigs"), namespace, name)
		if err != nil {
			return nil, err
		}
		if cfg != nil {
			add(cfg)
			return providers, nil
		}
		for u, err := range stored.List(ctx, v1alpha1.GroupName, namespace) {
			if err != nil {
				return nil, err
			}
			if u.GetKind() == "ProviderConfig" {
				add(u)
			}
		}
		return providers, nil
	}
}
