// Package plugin runs provider plugins: it starts an executable in a process group of its own, does the handshake of
// go-plugin (protocols 5 and 6, mutual TLS), hands its log lines to ours, notices when it dies, and leaves no child behind.
//
// It imports go-plugin, gRPC and the package protocol. It knows nothing of registries, schemas or configurations.
package plugin
