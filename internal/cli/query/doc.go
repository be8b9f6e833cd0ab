// Package query is the verb query, and the requests for existing infrastructure that import and resolve make.
package query
