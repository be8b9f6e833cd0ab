// Package plan is the planner. It computes the proposed new state for a provider, checks the provider's answer, and
// decides the action of a change. It orders the steps of an apply and encodes the change. It is pure: no I/O, no clock,
// no goroutines. Equal input gives equal output. It may import internal/lang, internal/graph, internal/schema,
// internal/diag, api/v1alpha1 and cty. It must not know processes, stores, objects or workflows.
//
// The rules are Terraform's:
// https://github.com/hashicorp/terraform/blob/main/docs/resource-instance-change-lifecycle.md
package plan
