// Package record writes the objects of files to a server, with the rules of server-side apply. It changes no
// infrastructure.
package record
