package contain

import (
	"slices"
	"strings"
)

// passed are the variables that every provider gets: where programs are, the language, and the way to the network.
var passed = []string{
	"PATH", "LANG", "LANGUAGE", "TZ",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy",
	"SSL_CERT_FILE", "SSL_CERT_DIR",
}

// withheld are the variables of the handshake with a plugin, and of this program. No grant passes them.
var withheld = []string{"HYKUBE_", "PLUGIN_", "TF_PLUGIN_", "TF_REATTACH_PROVIDERS"}

// Grantable says whether a Provider may name a variable of the server for its processes.
func Grantable(name string) bool {
	return !slices.ContainsFunc(withheld, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// environment returns the variables of ours that a provider gets, and those that granted names.
func environment(ours, granted []string) []string {
	var env []string
	for _, kv := range ours {
		name, _, _ := strings.Cut(kv, "=")
		if slices.Contains(passed, name) || strings.HasPrefix(name, "LC_") || slices.Contains(granted, name) && Grantable(name) {
			env = append(env, kv)
		}
	}
	return env
}

// get returns the value of a variable; empty when it is not set.
func get(env []string, name string) string {
	for _, kv := range slices.Backward(env) { // the last one counts
		if n, v, ok := strings.Cut(kv, "="); ok && n == name {
			return v
		}
	}
	return ""
}

// withDefaults adds variables that are not set yet.
func withDefaults(env []string, defaults ...string) []string {
	for _, kv := range defaults {
		name, _, _ := strings.Cut(kv, "=")
		if !slices.ContainsFunc(env, func(have string) bool { return strings.HasPrefix(have, name+"=") }) {
			env = append(env, kv)
		}
	}
	return env
}
