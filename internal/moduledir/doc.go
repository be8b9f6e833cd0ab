// Package moduledir packs a directory of Terraform files into objects: a ConfigMap with the files, a Secret with the
// values of sensitive variables, and a Module that names both. It reads the directory and variable files, and nothing
// else. It may import api, internal/module, internal/lang and internal/diag, and knows no server.
//
// The rules are Terraform's:
// https://developer.hashicorp.com/terraform/language/values/variables#variable-definition-precedence
package moduledir
