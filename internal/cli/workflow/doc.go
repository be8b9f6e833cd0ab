// Package workflow is the verbs workflows and ui, and names the run of a workflow that made a plan.
package workflow
