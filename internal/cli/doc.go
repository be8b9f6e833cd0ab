// Package cli is the kubectl plugin of Hykube: one file a verb, each an Options struct with Complete, Validate
// and Run. It speaks to the server over its HTTP API alone, exactly as kubectl does, with the same kubeconfig.
//
// It may import api, internal/diff, client-go and terminal helpers. It must not import server code, providers or
// the planner: the plugin stays small, and whatever it can do, any other client of the API can do too.
//
//go:generate go run ../../hack/clidocs ../../docs/cli
package cli
