// Package workflows has the Temporal workflows that make and apply a plan. They only orchestrate. The package has the
// names of the activities and the plain structs of their arguments and results, and does not know their
// implementation. Payloads have references and counts, but no state and no secrets.
package workflows
