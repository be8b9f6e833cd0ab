package plugin

import (
	"slices"
	"strings"
)

// Environment makes a plugin's environment from ours. Providers take credentials, proxies, certificates and caches from
// well-known variables, so ours are passed on, but for
//   - HYKUBE_*, which are our own;
//   - what speaks to Terraform itself: its log levels, command line, registry tokens and plugins;
//   - PLUGIN_*, which belong to the handshake, and Go's tuning knobs, which were chosen for us.
//
// Logging is off unless debug is true: providers built on HashiCorp's libraries write dozens of lines for each call, and pay
// for it with more than half of their speed. A provider makes much short-lived garbage, so its collector runs less often.
func Environment(ours []string, debug bool) []string {
	env := slices.DeleteFunc(slices.Clone(ours), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		switch name {
		case "TF_REATTACH_PROVIDERS", "GOGC", "GOMEMLIMIT", "GODEBUG", "GOTRACEBACK":
			return true
		}
		return slices.ContainsFunc([]string{"HYKUBE_", "TF_LOG", "TF_CLI_", "TF_TOKEN_", "TF_PLUGIN_", "PLUGIN_"},
			func(prefix string) bool { return strings.HasPrefix(name, prefix) })
	})
	level := "off"
	if debug {
		level = "debug"
	}
	return append(env, "TF_LOG_SDK="+level, "TF_LOG_PROVIDER="+level, "GOGC=400")
}
