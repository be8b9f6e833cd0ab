// Package resolve is the verb resolve, for creates with an unknown outcome and lost records.
package resolve
