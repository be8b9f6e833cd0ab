// Package differential runs the same configurations through Terraform (or OpenTofu) and through Hykube, with the same
// provider binaries, each against a simulated cloud of its own. After every step it compares the plans, the recorded
// states and the calls to the clouds. docs/differential.md explains how to run it.
package differential
