// Package canary hides unique secrets in a running server, and searches for them everywhere else. It imports neither
// the server nor its parts: it reads what users and other processes can read.
package canary
