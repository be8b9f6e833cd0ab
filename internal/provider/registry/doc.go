// Package registry speaks to the places on the network where providers are published: the provider registry protocol
// (https://developer.hashicorp.com/terraform/internals/provider-registry-protocol) and the provider network mirror protocol
// (https://developer.hashicorp.com/terraform/internals/provider-network-mirror-protocol). Over TLS only, with bounded answers,
// timeouts and retries. It verifies signatures and checksums, and writes what it verified into a file that it is given.
//
// It imports the standard library and an OpenPGP library. It knows nothing of versions' order, of installing or of processes.
package registry
