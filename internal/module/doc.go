// Package module reads Terraform modules and expands them: it loads the files of a module into a tree of
// configurations, and determines the instances of modules and blocks, with their templates. It leaves expressions to
// internal/lang, and knows no store, no provider and no schema. It may import api, internal/lang, internal/diag, hcl
// and cty. The package is pure: no I/O, no clock, no goroutines.
//
// The rules are Terraform's: https://developer.hashicorp.com/terraform/language
package module
