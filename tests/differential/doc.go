// Package differential drives the same configurations through Terraform (or OpenTofu) and through Hykube, with the same
// plugin binaries, each side against a simulated cloud of its own, and compares after every step what was planned, what is
// recorded and what the cloud was asked for. docs/differential.md says what that means and how to run it.
package differential
