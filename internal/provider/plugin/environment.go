package plugin

import (
	"slices"
	"strings"
)

// Environment returns a plugin's environment, derived from that of this process. Providers read credentials, proxies,
// certificates and caches from well-known variables, so it keeps all except:
//   - HYKUBE_*, which configure Hykube;
//   - variables for Terraform itself: log levels, command line, registry tokens and plugins;
//   - PLUGIN_*, which belong to the handshake, and tuning variables of the Go runtime, which are meant for this process.
//
// Logging is off unless debug is true: providers built with HashiCorp's libraries write dozens of lines per call, which
// takes more than half of their time. Providers allocate much short-lived memory, so their garbage collector runs less
// often.
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
