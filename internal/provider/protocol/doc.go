// Package protocol is a client of Terraform's provider protocol, versions 5 and 6. A Client is a
// tfprotov6.ProviderServer, with lists and actions, that calls a plugin over a gRPC connection.
//
// Both versions use the same layout for every message except a schema's attribute, and different names for some calls.
// So for a plugin of protocol 5, the same client uses an adapter of the connection. A test compares the two layouts
// field by field. Values and private data pass through unchanged, as bytes.
//
// Methods is the other end of four calls, for providers that take them in batches.
//
// The package imports the generated messages, gRPC and terraform-plugin-go. It knows no processes, no plans, and not
// internal/schema.
package protocol
