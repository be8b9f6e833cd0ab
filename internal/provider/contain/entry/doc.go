// Package entry is the first code of a contained provider process. If a program that imports it was started as "PROGRAM
// provider-exec ORDER", the package drops rights and executes the provider before the Go runtime starts.
//
// The Go runtime needs about ten milliseconds to start a program of the server's size, and its packages need eighty
// more. So the code is a constructor in C, which the dynamic loader calls before both. The container runtimes runc and
// crun start their processes in the same way.
package entry
