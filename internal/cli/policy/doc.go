// Package policy is the verbs below policy.
package policy
