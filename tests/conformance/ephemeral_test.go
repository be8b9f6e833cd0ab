package conformance

import (
	"context"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/tests/conformance/cloud"
)

func ephemeral(t *testing.T, w *world) instance.Ephemeral {
	t.Helper()
	l := w.lease(t)
	return instance.Ephemeral{Name: "conform6_token", Schema: l.Schema.Ephemerals["conform6_token"], Provider: l}
}

func TestEphemeral(t *testing.T) {
	t.Parallel()
	w := ownWorld(t, "conform6", cloud.Options{})
	e := ephemeral(t, w)
	for name, tc := range map[string]struct {
		reason  string
		set     attrs
		refused string
		closes  int
	}{
		"4.2 open and close": {"always closed", nil, "", 1},
		"4.2 error":          {"nothing is open", attrs{"behaviour": "open-error"}, "Failed on command", 0},
		"4.2 unknown config": {"it must be known", attrs{"name": cty.UnknownVal(cty.String)}, "not known yet", 0},
		"4.2 unknown result": {"it is open all the same, and closed", attrs{"behaviour": "open-unknown"}, "unknown values", 1},
		"4.2 not as asked":   {"it is open all the same, and closed", attrs{"behaviour": "open-not-config"}, "does not match config value", 1},
		"4.2 put off":        {"we did not say that we can handle it", attrs{"behaviour": "open-deferred"}, "did not allow that", 0},
	} {
		t.Run(name, func(t *testing.T) {
			before := len(w.calls(t, "CloseEphemeralResource", ""))
			set := attrs{"name": "a"}
			for k, v := range tc.set {
				set[k] = v
			}
			o, _, err := e.Open(t.Context(), object(t, e.Schema.Block, set))
			refused(t, err, tc.refused)
			if err == nil {
				same(t, "value", o.Value.GetAttr("value"), cty.StringVal("value-of-a"))
				must(t, o.Close(t.Context()))
				must(t, o.Close(t.Context())) // a second one does nothing
			}
			if n := len(w.calls(t, "CloseEphemeralResource", "")) - before; n != tc.closes {
				t.Errorf("%s: closed %d times, want %d", tc.reason, n, tc.closes)
			}
		})
	}
	t.Run("4.2 close fails", func(t *testing.T) {
		o, _, err := e.Open(t.Context(), object(t, e.Schema.Block, attrs{"name": "a"}))
		must(t, err)
		must(t, w.cloud.Command("conform6_token", "close-error"))
		refused(t, o.Close(t.Context()), "Failed on command")
		must(t, w.cloud.Command("conform6_token"))
	})
	t.Run("4.2 closed when the caller has gone", func(t *testing.T) {
		o, _, err := e.Open(t.Context(), object(t, e.Schema.Block, attrs{"name": "a"}))
		must(t, err)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		must(t, o.Close(gone))
	})
}

func TestEphemeralRenews(t *testing.T) {
	t.Parallel()
	w := ownWorld(t, "conform6", cloud.Options{})
	e := ephemeral(t, w)
	o, _, err := e.Open(t.Context(), object(t, e.Schema.Block, attrs{"name": "a", "renew": "2s", "behaviour": "binary-private"}))
	must(t, err)
	await(t, "two renewals", func() bool { return len(w.calls(t, "RenewEphemeralResource", "")) >= 2 })
	must(t, o.Close(t.Context()))
	renewals := w.calls(t, "RenewEphemeralResource", "")
	closed := w.calls(t, "CloseEphemeralResource", "")
	if len(closed) != 1 || len(closed[0].Private) < 10 || string(closed[0].Private) != string(renewals[0].Private) {
		t.Errorf("4.2: closed with private data %q after renewals with %q", closed[0].Private, renewals[0].Private)
	}
}

func TestEphemeralRenewFails(t *testing.T) {
	t.Parallel()
	for behaviour, text := range map[string]string{"renew-error": "Failed on command", "renew-crash": "ended"} {
		t.Run(behaviour, func(t *testing.T) {
			t.Parallel()
			w := ownWorld(t, "conform6", cloud.Options{})
			e := ephemeral(t, w)
			must(t, w.cloud.Command("conform6_token", behaviour))
			o, _, err := e.Open(t.Context(), object(t, e.Schema.Block, attrs{"name": "a", "renew": "1s"}))
			must(t, err)
			await(t, "a renewal", func() bool { return len(w.calls(t, "RenewEphemeralResource", "")) >= 1 })
			refused(t, o.Close(t.Context()), text) // 4.2: it neither hangs nor is silent
		})
	}
}
