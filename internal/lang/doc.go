// Package lang implements the expression language of specs: JSON with templates, which use Terraform's expressions and
// functions. It parses a spec, lists and checks its references, and evaluates it to a value of the schema's type. Every
// evaluation has a cost budget. The package is pure: no I/O, no clock, no goroutines. Equal input gives equal output.
// It may import internal/schema, internal/diag, internal/suggest, api/v1alpha1, cty and hcl.
//
// The rules are Terraform's: https://developer.hashicorp.com/terraform/language/expressions
package lang
