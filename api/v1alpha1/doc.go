// Package v1alpha1 is the hykube.io/v1alpha1 API. It defines the kinds that are the same on every server (Provider,
// ProviderConfig, Plan and others) and the types of their subresources. It also defines the conditions of these and of
// all dynamic kinds. It imports only apimachinery, so that any client can use it.
//
// +k8s:deepcopy-gen=package
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=io.hykube.api.v1alpha1
// +groupName=hykube.io
package v1alpha1
