// Package batchv1 has the messages and names of the service in batch.proto, which a provider may serve beside the
// Terraform protocol. Providers use package sdk/batch, which serves it.
package batchv1

// Names of the service's methods on the wire.
const (
	Service         = "hykube.batch.v1.Batch"
	GetLimitsMethod = "GetLimits"
	CallMethod      = "Call"
)

// Methods are the calls of the provider protocol that may be batched, by their names on the wire.
var Methods = map[string]Method{
	"/tfplugin6.Provider/ValidateResourceConfig": Method_VALIDATE_RESOURCE_CONFIG,
	"/tfplugin6.Provider/ReadResource":           Method_READ_RESOURCE,
	"/tfplugin6.Provider/PlanResourceChange":     Method_PLAN_RESOURCE_CHANGE,
	"/tfplugin6.Provider/ApplyResourceChange":    Method_APPLY_RESOURCE_CHANGE,
}
