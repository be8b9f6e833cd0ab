// Package server is Hykube's API server. It opens the data directory, and connects storage, access, registries, kinds
// and engine in one process. Options (flags) become a Config, Config.Complete gives a CompletedConfig, its New gives a
// Server, and Run serves until its context ends. It may import the packages below it. Only cmd imports it.
package server
