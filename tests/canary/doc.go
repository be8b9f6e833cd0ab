// Package canary hides unique secrets in a running server, and looks for them everywhere else. It imports neither the
// server nor its parts: it sees them as users and other processes do.
package canary
