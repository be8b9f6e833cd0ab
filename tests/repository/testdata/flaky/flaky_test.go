package flaky

import (
	"os"
	"testing"
)

// TestSecondRun fails until the file that HYKUBE_TEST_RUNS names exists, which it then makes.
func TestSecondRun(t *testing.T) {
	runs, err := os.OpenFile(os.Getenv("HYKUBE_TEST_RUNS"), os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		_ = runs.Close()
		t.Fatal("this is the first run")
	}
	if !os.IsExist(err) {
		t.Fatal(err)
	}
}
