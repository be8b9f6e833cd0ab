// Package exit decides the exit code of the error of a command, and prints the error. It imports nothing of the
// plugin.
package exit
