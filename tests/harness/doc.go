// Package harness starts a hykube server and a simulated cloud for tests and benchmarks, from built binaries and in
// their own directory. It may import the simulated cloud and clients of the API. It must not import the server, so that
// its users do not link Kubernetes and Temporal. Product code never imports it.
package harness
