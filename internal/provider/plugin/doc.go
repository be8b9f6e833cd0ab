// Package plugin runs provider plugins. It starts an executable in its own process group, and does the handshake of
// go-plugin (protocols 5 and 6, mutual TLS). It forwards the log lines, detects the exit, and stops all child
// processes.
//
// It imports go-plugin, gRPC and internal/diag. It knows no registries, schemas or configurations.
package plugin
