// Package protocol speaks Terraform's provider protocol, versions 5 and 6, to a plugin: a Client is a
// tfprotov6.ProviderServer, with lists and actions, at the far end of a gRPC connection.
//
// Both versions share the layout of every message but a schema's attribute, and differ in the names of some calls, so a
// plugin of protocol 5 is the same client behind a small translation of the connection; a test compares the two layouts
// field by field. Values and private data pass through as the bytes they are.
//
// The package imports the generated messages, gRPC and terraform-plugin-go. It knows nothing of processes, schemas in our
// own form, or plans.
package protocol
