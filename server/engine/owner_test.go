package engine

import (
	"errors"
	"log/slog"
	"os/user"
	"testing"

	otelresource "go.opentelemetry.io/otel/sdk/resource"
)

// TestAUserWithoutAName starts Temporal in a process whose user has no name.
func TestAUserWithoutAName(t *testing.T) {
	original := processOwner
	t.Cleanup(func() { processOwner = original })
	unknown := func() (*user.User, error) { return nil, errors.New("user: unknown userid 65532") }

	processOwner = unknown
	dir := t.TempDir()
	main, visibility := databases(dir)
	for _, d := range []database{main, visibility} {
		if err := ensureSchema(t.Context(), d, slog.New(slog.DiscardHandler)); err != nil {
			t.Fatal(err)
		}
	}
	ports, err := freePorts(len(services))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := startOn(ports, main, visibility, &mutualTLS{}, "hykube", slog.New(slog.DiscardHandler)); err == nil {
		t.Error("Temporal no longer needs the name of the user: remove owner.go")
	}

	nameUser(unknown)
	if _, err := otelresource.New(t.Context(), otelresource.WithProcessOwner()); err != nil {
		t.Errorf("Temporal would not start: %v", err)
	}
}
