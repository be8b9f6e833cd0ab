// Package registry is a client of provider registries: the provider registry protocol
// (https://developer.hashicorp.com/terraform/internals/provider-registry-protocol) and the provider network mirror
// protocol (https://developer.hashicorp.com/terraform/internals/provider-network-mirror-protocol). It uses TLS only,
// limits the size of answers, and has timeouts and retries. It verifies signatures and checksums, and writes a
// verified package to the caller's file.
//
// It imports the standard library and an OpenPGP library. It does not order versions, install packages or run
// processes.
package registry
