// Package objects reads, lists and changes the objects of a server, and explains their condition Ready. It knows no
// plan.
package objects
