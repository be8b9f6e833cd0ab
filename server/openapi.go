package server

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	aggregatorscheme "k8s.io/kube-aggregator/pkg/apiserver/scheme"
	openapicommon "k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	kubeopenapi "k8s.io/kubernetes/pkg/generated/openapi"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/server/registry"
)

// openAPI configures the documents of the fixed kinds. Package kinds serves those of the providers' kinds.
func (c *completedConfig) openAPI() {
	definitions := func(ref openapicommon.ReferenceCallback) map[string]openapicommon.OpenAPIDefinition {
		all := kubeopenapi.GetOpenAPIDefinitions(ref)
		maps.Copy(all, registry.GetOpenAPIDefinitions(ref))
		return all
	}
	namer := openapinamer.NewDefinitionNamer(legacyscheme.Scheme, registry.NewScheme(), aggregatorscheme.Scheme)
	c.generic.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(definitions, namer)
	c.generic.OpenAPIConfig.Info.Title = "Hykube"
	c.generic.OpenAPIConfig.PostProcessSpec = func(doc *spec.Swagger) (*spec.Swagger, error) {
		withoutCustomResources(doc)
		withoutStrategicMerge(doc)
		return doc, nil
	}
	c.generic.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(definitions, namer)
	c.generic.OpenAPIV3Config.Info.Title = "Hykube"
	c.generic.OpenAPIV3Config.PostProcessSpec = func(doc *spec3.OpenAPI) (*spec3.OpenAPI, error) {
		withoutStrategicMergeV3(doc)
		return doc, nil
	}
}

// withoutCustomResources removes the parameter fieldValidation from the PATCH of a namespace, only in the OpenAPI v2
// document. From this parameter, kubectl infers that a server has custom resources. For an unknown kind, it would then
// fail to list their definitions instead of reporting the unknown kind.
func withoutCustomResources(doc *spec.Swagger) {
	item, ok := doc.Paths.Paths["/api/v1/namespaces/{name}"]
	if !ok || item.Patch == nil {
		return
	}
	const name = "fieldValidation"
	item.Patch.Parameters = slices.DeleteFunc(item.Patch.Parameters, func(p spec.Parameter) bool {
		return p.Name == name || strings.HasPrefix(p.Ref.String(), "#/parameters/"+name)
	})
}

// withoutStrategicMerge removes the strategic merge patch from the operations on the kinds of hykube.io. Some of their
// fields hold any object, such as the template of a ResourceSet. For these, kubectl warns that it cannot merge them, at
// each apply. A merge patch has the same effect, because no list of these kinds merges by a key.
func withoutStrategicMerge(doc *spec.Swagger) {
	for path, item := range doc.Paths.Paths {
		if item.Patch != nil && strings.HasPrefix(path, fixedKindsPath) {
			// The routes share the list, and must keep it.
			item.Patch.Consumes = slices.DeleteFunc(slices.Clone(item.Patch.Consumes),
				func(t string) bool { return t == string(types.StrategicMergePatchType) })
		}
	}
}

// withoutStrategicMergeV3 is withoutStrategicMerge for the OpenAPI v3 document.
func withoutStrategicMergeV3(doc *spec3.OpenAPI) {
	if doc.Paths == nil {
		return
	}
	for path, item := range doc.Paths.Paths {
		if item.Patch != nil && item.Patch.RequestBody != nil && strings.HasPrefix(path, fixedKindsPath) {
			delete(item.Patch.RequestBody.Content, string(types.StrategicMergePatchType))
		}
	}
}

// fixedKindsPath is the beginning of the paths of the kinds of hykube.io.
const fixedKindsPath = "/apis/" + v1alpha1.GroupName + "/"
