// Package plugin runs provider plugins. It starts an executable in a process group of its own, does the handshake of
// go-plugin (protocols 5 and 6, mutual TLS), forwards its log lines, detects its exit, and stops all of its child
// processes.
//
// It imports go-plugin, gRPC and internal/diag. It knows no registries, schemas or configurations.
package plugin
