// Package console is the verb console, which evaluates expressions.
package console
