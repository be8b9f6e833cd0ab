// Package e2e holds the stories of Hykube, told with the binaries that a user has: testdata/*.txtar are scripts of
// commands and what they must print. They share one server, each in a namespace of its own; a story about the server itself starts its own.
package e2e
