// Package clients tests the server with common clients: Argo CD's cluster cache, and many watches that open, stop and
// close. `make test-watch` runs the long forms.
package clients
