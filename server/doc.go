// Package server is Hykube's API server: it opens the data directory, joins storage, access, registries, kinds and engine
// into one process, and serves them. Options (flags) become a Config, a completed Config becomes a Server, and Run serves
// until its context ends.
// It may import everything below it; nothing but cmd imports it.
package server
