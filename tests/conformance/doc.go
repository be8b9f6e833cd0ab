// Package conformance tests the rules of the provider protocol, one case for each rule, with real provider processes
// that break it. conform6 speaks protocol 6 and uses the plugin framework. conform5 speaks protocol 5 with the legacy
// type system of terraform-plugin-sdk. docs/conformance.md lists the rules and their tests.
package conformance
