// Package clitest is a server in memory for the tests of the plugin: it answers the HTTP API as far as the plugin uses
// it.
package clitest
