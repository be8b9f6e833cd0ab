// Package entry is the first code of a contained provider process. If a program that imports it was started as "PROGRAM
// provider-exec ORDER", the package executes the order during package initialization. It drops rights, executes the
// provider, and never returns to main.
//
// The server's packages take about eighty milliseconds to initialize. Go initializes this package before them, because
// it imports only a few packages of the standard library. So a sandbox costs only a few milliseconds. Do not add
// imports.
package entry
