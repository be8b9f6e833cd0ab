// Package version holds the version of the plugin.
package version

// Version is the plugin's version, set by the build.
var Version = "dev"
