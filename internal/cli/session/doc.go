// Package session is the connection of a command to a server: the flags of kubectl, the clients, the kinds that the
// server has, and what all verbs have in common: their run, completion and the explanation of errors. It knows no
// verb.
package session
