package plugin

import (
	"path"
	"strings"
)

// tuning returns variables for the libraries of providers. Logging is off unless debug is true: providers write dozens
// of lines for each call, which takes more than half of their time. A provider produces much short-lived garbage, so
// its garbage collector runs less often.
func tuning(debug bool) []string {
	level := "off"
	if debug {
		level = "debug"
	}
	return []string{"TF_LOG_SDK=" + level, "TF_LOG_PROVIDER=" + level, "GOGC=400"}
}

// quiet returns variables that a provider gets unless debug is true. The Provider's own variables override them.
// Without its own variable, a part of the libraries composes each line before the level of TF_LOG_SDK discards it. The
// log of a provider's own code ignores TF_LOG_PROVIDER, and has a variable with the provider's type. Hykube discards
// what that code logs below info.
func quiet(debug bool, source string) []string {
	if debug {
		return nil
	}
	name := strings.ToUpper(strings.ReplaceAll(path.Base(source), "-", "_"))
	return []string{
		"TF_LOG_SDK_PROTO=off", "TF_LOG_SDK_FRAMEWORK=off", "TF_LOG_SDK_HELPER_SCHEMA=off", "TF_LOG_SDK_MUX=off",
		"TF_LOG_PROVIDER_" + name + "=info",
	}
}
