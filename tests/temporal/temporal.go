// Package temporal runs a Temporal server for tests, as the cluster beside which users run several processes of Hykube.
package temporal

import (
	"testing"

	"go.temporal.io/server/temporaltest"
)

// Serve runs a Temporal server until the test ends. It returns the flags of hykube for it.
func Serve(t *testing.T) (flags []string) {
	t.Helper()
	s := temporaltest.NewServer(temporaltest.WithT(t))
	return []string{"--temporal-address", s.GetFrontendHostPort(), "--temporal-tls=false"}
}
