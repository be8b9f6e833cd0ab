// Package plan is the verbs of plans: plan, show, approve, discard and cancel.
package plan
