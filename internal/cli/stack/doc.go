// Package stack is the verbs below stack, and drift.
package stack
