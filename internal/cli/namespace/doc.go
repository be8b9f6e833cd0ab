// Package namespace finds namespaces with resources for hints, and has the verb thaw.
package namespace
