// Package mutants plants bugs and expects the tests of the edited package to fail. Each mutant is a small harmful
// edit. The package compiles it through an overlay, so no file of the repository changes.
package mutants
