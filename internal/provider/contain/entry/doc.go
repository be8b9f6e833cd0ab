// Package entry is where the process of a contained provider begins. A program that links this package and was started as "PROGRAM
// provider-exec ORDER" carries the order out while Go initializes packages, and never reaches main: it gives up rights, and executes
// the provider.
//
// The server's packages take some eighty milliseconds to initialize. This one comes first among them because it imports nothing but
// a few packages of the standard library, so that a sandbox costs few milliseconds. Nothing else may be added to its imports.
package entry
