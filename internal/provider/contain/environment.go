package contain

import (
	"slices"
	"strings"
)

// passedVariables are the variables that every provider gets: the program path, the language, and the proxies and
// certificates for the network.
var passedVariables = []string{
	"PATH", "LANG", "LANGUAGE", "TZ",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy",
	"SSL_CERT_FILE", "SSL_CERT_DIR",
}

// withheld are prefixes of the variables of Hykube and of the plugin handshake. A provider never gets them.
var withheld = []string{"HYKUBE_", "PLUGIN_", "TF_PLUGIN_", "TF_REATTACH_PROVIDERS"}

// Grantable reports whether a Provider may name the server's variable for its processes.
func Grantable(name string) bool {
	return !slices.ContainsFunc(withheld, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// environment returns the variables that a provider gets. ours is the server's environment, and granted holds the names
// of further variables.
func environment(ours, granted []string) []string {
	var env []string
	for _, kv := range ours {
		name, _, _ := strings.Cut(kv, "=")
		if slices.Contains(passedVariables, name) || strings.HasPrefix(name, "LC_") ||
			slices.Contains(granted, name) && Grantable(name) {
			env = append(env, kv)
		}
	}
	return env
}

// get returns the value of a variable, or "" if the variable is not set.
func get(env []string, name string) string {
	for _, kv := range slices.Backward(env) { // the last assignment of a variable is effective
		if n, v, ok := strings.Cut(kv, "="); ok && n == name {
			return v
		}
	}
	return ""
}

// withDefaults adds the variables that env does not set.
func withDefaults(env []string, defaults ...string) []string {
	for _, kv := range defaults {
		name, _, _ := strings.Cut(kv, "=")
		if !slices.ContainsFunc(env, func(have string) bool { return strings.HasPrefix(have, name+"=") }) {
			env = append(env, kv)
		}
	}
	return env
}
