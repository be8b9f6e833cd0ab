// Package v1alpha1 is the hykube.io/v1alpha1 API: the kinds that are the same on every server (Provider,
// ProviderConfig, Plan and others), the types of their subresources, and the conditions that they and every dynamic
// kind report. It imports apimachinery alone, so that any client can use it.
//
// +k8s:deepcopy-gen=package
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=io.hykube.api.v1alpha1
// +groupName=hykube.io
package v1alpha1
