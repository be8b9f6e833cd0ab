// Package workflows is the order in which a plan is made and applied, as Temporal workflows: orchestration only.
// It holds the names of the activities and the plain structs that they exchange, and knows nothing of how they work. Payloads
// carry references and counts, never state and never secrets.
package workflows
