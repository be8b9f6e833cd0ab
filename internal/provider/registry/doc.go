// Package registry is a client of provider registries: the provider registry protocol
// (https://developer.hashicorp.com/terraform/internals/provider-registry-protocol) and the provider network mirror
// protocol (https://developer.hashicorp.com/terraform/internals/provider-network-mirror-protocol). It uses TLS only,
// limits the size of answers, and has timeouts and retries. It verifies checksums and writes a package to the caller's
// file. The caller verifies signatures.
//
// It imports the standard library. It does not order versions, install packages or run processes.
package registry
