// Package history is the verb history, which lists the plans of a namespace from the server's records.
package history
