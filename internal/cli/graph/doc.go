// Package graph is the verb graph, which draws the dependencies of resources or of the changes of a plan.
package graph
