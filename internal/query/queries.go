// Package query answers read-only questions: the existing infrastructure of a type, the object that manages it, and
// the value of an expression.
package query

import "github.com/hykube/hykube/internal/scope"

// Queries answers what providers and the ledger know, and changes nothing.
type Queries struct{ *scope.Sources }
