// Package provider is the verbs below provider: list, schema and lock.
package provider
