// Package e2e runs end-to-end stories with the built binaries: testdata/*.txtar are scripts of commands and expected
// outputs. They share one server, each in a namespace of its own. A story about the server itself starts its own.
package e2e
