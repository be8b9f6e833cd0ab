package plugin

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
