// Package cli is the kubectl plugin of Hykube: one file for each verb, with an options struct that has Complete,
// Validate and Run. The plugin talks to the server only over its HTTP API, with the same kubeconfig as kubectl.
//
// It may import the API types, the rendering packages in internal, client-go and terminal helpers. It must not import
// server code, providers or the planner. So the plugin stays small, and every other client of the API can do the same.
package cli
