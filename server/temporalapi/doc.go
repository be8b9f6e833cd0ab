// Package temporalapi serves the gRPC WorkflowService of the embedded Temporal to users, on the port of the API server.
// Each Kubernetes namespace has a Temporal namespace of its own, and a request can name no other. Authentication,
// authorization, priority and audit are those of the API server, which treats each request as one for the virtual
// resource workflows.hykube.io. The package knows neither the engine nor the store: the server passes functions that
// access them.
package temporalapi
