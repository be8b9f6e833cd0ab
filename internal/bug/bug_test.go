package bug

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

func crash() error { panic("the map is nil") }

func TestPanicsAreErrors(t *testing.T) {
	var text bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&text, nil))
	if err := Guard(logger, "plan sim_network.main", crash); !Is(fmt.Errorf("plan: %w", err)) {
		t.Errorf("the error is %v", err)
	}
	for _, want := range []string{`while="plan sim_network.main"`, "the map is nil", "bug_test.go"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, &text)
		}
	}
	text.Reset()
	plain := errors.New("no")
	if err := Guard(logger, "plan", func() error { return plain }); !errors.Is(err, plain) || Is(err) || text.Len() > 0 {
		t.Errorf("another error became %v, with the log %q", err, &text)
	}
}

func TestGroupsCatchPanics(t *testing.T) {
	group, ctx := GroupOf(t.Context())
	group.Go(crash)
	group.Go(func() error { <-ctx.Done(); return nil })
	if err := group.Wait(); !Is(err) {
		t.Errorf("the error is %v", err)
	}
	all := NewGroup()
	all.Go(crash)
	if err := all.Wait(); !Is(err) {
		t.Errorf("the error is %v", err)
	}
}
