// Package clients tests the server under clients that people run against it: Argo CD's cache of a cluster, and many watches
// that are opened, stopped and closed. `make test-watch` runs the long forms.
package clients
