// Package terminal is the streams of a command and what they can do: colours, questions, lines that are redrawn. It
// knows no server.
package terminal
