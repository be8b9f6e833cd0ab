// Package diff renders a plan as text for users: each attribute of a change as Terraform shows it, a summary of a plan
// of any size, and diagnostics. It reads only the API types of a plan: no client, no schema, no terminal. The caller
// passes the width and whether to use colours.
//
// It may import the API types, apimachinery and text width helpers. It must not know commands, servers or providers.
package diff
