package server

import (
	"testing"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
)

// TestServingCertificateIsNotWatched expects no watch on the files of the serving certificate. It would read a new key
// with the old certificate, and log an error.
func TestServingCertificateIsNotWatched(t *testing.T) {
	if _, watched := any(unwatched{new(dynamiccertificates.DynamicCertKeyPairContent)}).(dynamiccertificates.ControllerRunner); watched {
		t.Error("the API server watches the files")
	}
}
