// Package harness starts a hykube server and a simulated cloud for tests and benchmarks: the built binary as users run it, in a
// directory of its own. It may import the simulated cloud and clients of the API. It must not import the server: whoever links the
// harness does not link Kubernetes and Temporal. Product code never imports it.
package harness
