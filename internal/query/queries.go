// Package query answers questions that change nothing: what a provider has, which object manages it, and what an expression gives.
package query

import "github.com/hykube/hykube/internal/scope"

// Queries answers what providers and the ledger know, and changes nothing.
type Queries struct{ *scope.Sources }
