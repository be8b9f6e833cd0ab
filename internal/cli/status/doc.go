// Package status is the verb status: of a plan, of a namespace, and of all namespaces.
package status
