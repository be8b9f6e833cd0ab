package version

// Version is the plugin's version, set by the build.
var Version = "dev"
