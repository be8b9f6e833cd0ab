// Package operation makes plans, shows them, asks, approves them, follows their apply and prints the result, for every
// verb that changes infrastructure. It knows no files: package speculation plans these before they are recorded.
package operation
