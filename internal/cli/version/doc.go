// Package version holds the version of the plugin.
package version
