// Package harness starts a hykube server and a simulated cloud for tests and benchmarks, as built binaries in a
// directory of their own. It may import the simulated cloud and clients of the API. It must not import the server, so
// that its users do not link Kubernetes and Temporal. Product code never imports it.
package harness
