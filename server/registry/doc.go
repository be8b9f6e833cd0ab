// Package registry is how the kinds that are the same on every server (Provider, ProviderConfig, Plan) are defaulted,
// validated, decided upon, stored and shown as tables, with the subresources of Plan. It imports api/v1alpha1 and
// k8s.io/apiserver; what it must ask the rest of the server (who uses an object, what a plan changes) comes in as funcs.
package registry
