package server

import (
	"maps"
	"slices"
	"strings"

	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	aggregatorscheme "k8s.io/kube-aggregator/pkg/apiserver/scheme"
	openapicommon "k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	kubeopenapi "k8s.io/kubernetes/pkg/generated/openapi"

	"github.com/hykube/hykube/server/registry"
)

// openAPI sets up the documents of the fixed kinds. Providers' kinds bring their own, see package kinds.
func (c *completedConfig) openAPI() {
	definitions := func(ref openapicommon.ReferenceCallback) map[string]openapicommon.OpenAPIDefinition {
		all := kubeopenapi.GetOpenAPIDefinitions(ref)
		maps.Copy(all, registry.GetOpenAPIDefinitions(ref))
		return all
	}
	namer := openapinamer.NewDefinitionNamer(legacyscheme.Scheme, registry.NewScheme(), aggregatorscheme.Scheme)
	c.generic.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(definitions, namer)
	c.generic.OpenAPIConfig.Info.Title = "Hykube"
	c.generic.OpenAPIConfig.PostProcessSpec = withoutCustomResources
	c.generic.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(definitions, namer)
	c.generic.OpenAPIV3Config.Info.Title = "Hykube"
}

// withoutCustomResources takes the parameter fieldValidation away from what patches a namespace, in the second version of
// the document alone, where kubectl looks for nothing else. It is how kubectl tells that a server has custom resources: it
// would ask for their definitions when it meets a kind that nobody serves, and say that it could not list them instead of
// that there is no such kind.
func withoutCustomResources(doc *spec.Swagger) (*spec.Swagger, error) {
	item, ok := doc.Paths.Paths["/api/v1/namespaces/{name}"]
	if !ok || item.Patch == nil {
		return doc, nil
	}
	const name = "fieldValidation"
	item.Patch.Parameters = slices.DeleteFunc(item.Patch.Parameters, func(p spec.Parameter) bool {
		return p.Name == name || strings.HasPrefix(p.Ref.String(), "#/parameters/"+name)
	})
	return doc, nil
}
