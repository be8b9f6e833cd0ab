// Package conformance holds the rules that a client of Terraform providers must keep, one case a rule, each shown with a real
// provider process that breaks it: conform6 speaks protocol 6 and is made with the plugin framework, conform5 speaks protocol 5 with
// the legacy type system of terraform-plugin-sdk. docs/conformance.md says which rule is where.
package conformance
