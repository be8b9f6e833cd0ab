// Package plan is the planner: it reads what a spec says, evaluates the expressions in it, orders what depends
// on what, works out the state to propose to a provider, checks the provider's answer, and decides and renders
// the change. It is pure: no I/O, no clock, no goroutines; equal input gives equal output. It may import
// internal/schema, api/v1alpha1, cty and hcl, and must not know of processes, stores, objects or workflows.
//
// The rules are Terraform's:
// https://github.com/hashicorp/terraform/blob/main/docs/resource-instance-change-lifecycle.md
package plan
