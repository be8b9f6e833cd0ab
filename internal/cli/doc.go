// Package cli is the kubectl plugin of Hykube. It builds the tree of commands. Each noun has a package below it, with
// one file for each verb: an options struct with Complete, Validate and Run, on a session. The plugin talks to the
// server only over its HTTP API, with the same kubeconfig as kubectl.
//
// It may import the API types, the rendering packages in internal, client-go and terminal helpers. It must not import
// server code, providers or the planner. So the plugin stays small, and every other client of the API can do the same.
package cli
