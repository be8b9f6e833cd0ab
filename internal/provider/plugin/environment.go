package plugin

// tuning returns variables for the libraries that providers are built on. Logging is off unless debug is true: providers built
// on HashiCorp's libraries write dozens of lines for each call, and pay for it with more than half of their speed. A provider makes much
// short-lived garbage, so its collector runs less often.
func tuning(debug bool) []string {
	level := "off"
	if debug {
		level = "debug"
	}
	return []string{"TF_LOG_SDK=" + level, "TF_LOG_PROVIDER=" + level, "GOGC=400"}
}
