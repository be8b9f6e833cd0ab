package batch

import (
	"os"
	"testing"
)

// TestMain turns the logs of the provider protocol off. They go to stderr, each call in several lines.
func TestMain(m *testing.M) {
	os.Setenv("TF_LOG_SDK", "off")
	os.Exit(m.Run())
}
