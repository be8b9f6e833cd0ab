// Package batch calls providers that take many calls at once. The service is optional, and a plugin serves it beside
// the Terraform protocol on the same connection; see sdk/batch/batchv1/batch.proto. Package sdk/batch is its other end.
//
// A Conn collects the waiting calls of one method and one type, and sends them as one call. Its callers do not know
// batches: they make single calls. The size of a batch follows from the load.
package batch

import "github.com/hykube/hykube/sdk/batch/batchv1"

// Limits holds the limits that a provider announces, by kind of call.
type Limits map[Kind]Limit

// Limit is the announcement for one kind of call; see GetLimits.Limit in batch.proto.
type Limit struct {
	// MaxCalls is the maximum number of calls in one batch.
	MaxCalls int
	// Deterministic is true if the same plan request always has the same answer.
	Deterministic bool
}

// Kind identifies calls that may be in one batch.
type Kind struct {
	Method batchv1.Method
	Type   string
}

// Types returns the resource types of which the provider takes many calls at once.
func (l Limits) Types() map[string]bool {
	types := map[string]bool{}
	for kind := range l {
		types[kind.Type] = true
	}
	return types
}

// Deterministic returns the resource types of which the same plan request always has the same answer.
func (l Limits) Deterministic() map[string]bool {
	types := map[string]bool{}
	for kind, limit := range l {
		if kind.Method == batchv1.Method_PLAN_RESOURCE_CHANGE && limit.Deterministic {
			types[kind.Type] = true
		}
	}
	return types
}
