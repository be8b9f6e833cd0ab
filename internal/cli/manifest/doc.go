// Package manifest reads objects from files, directories, URLs and kustomizations, with the positions of their fields.
// It writes nothing to the server; package record does.
package manifest
