package provider

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
)

// TestLogsOfAProvider reads the log of a provider. Without Debug, it writes no line that the server discards.
func TestLogsOfAProvider(t *testing.T) {
	for _, tt := range []struct {
		what  string
		debug bool
		env   []string
		// detail is the text of lines that the provider's code logs at debug, and libraries that of their own lines.
		detail, libraries bool
	}{
		{"the server discards details", false, nil, false, false},
		{"the server shows details", true, nil, true, true},
		{"the Provider asks for details", false, []string{"TF_LOG_PROVIDER_TINY=debug"}, true, false},
	} {
		var log bytes.Buffer
		pkg := tinyPackage(t)
		pkg.Grants.Environment = append(pkg.Grants.Environment, "TF_LOG_PROVIDER_TINY")
		p := newPool(t, PoolConfig{Debug: tt.debug, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))}, tt.env...)
		l, err := p.Acquire(t.Context(), pkg, Configuration{Key: "eu", Config: tinyConfig("eu")})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := create(t.Context(), l, "tiny_thing", map[string]cty.Value{"name": cty.StringVal("a")}); err != nil {
			t.Fatal(err)
		}
		l.Release()
		if err := p.Close(t.Context()); err != nil { // it waits for the end of the log
			t.Fatal(err)
		}
		for text, want := range map[string]bool{
			"provider: creating\"": true, "provider: creating in detail": tt.detail, "marking computed attribute that is null": tt.libraries,
		} {
			if got := strings.Contains(log.String(), text); got != want {
				t.Errorf("%s: %q is in the log: %v, want %v:\n%s", tt.what, text, got, want, log.String())
			}
		}
	}
}
