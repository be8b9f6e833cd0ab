// Package workflows has the Temporal workflows that make and apply plans, run schedules, and send the messages of
// Notifications. They only orchestrate. The package defines the names of the activities and their argument and result
// structs, but not their implementation. Payloads have references and counts, but no state and no secrets.
package workflows
