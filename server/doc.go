// Package server is Hykube's API server. It opens the data directory, connects storage, access, registries, kinds and
// engine in one process, and serves them. Options (flags) become a Config, a completed Config becomes a Server, and
// Run serves until its context ends. It may import the packages below it. Only cmd imports it.
package server
