package conformance

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/provider"
	"github.com/hykube/hykube/tests/conformance/cloud"
)

// TestProviderDiesDuringACall ends the provider during a call. The effect of the call is unknown.
func TestProviderDiesDuringACall(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason    string
		provider  string
		update    bool
		behaviour string
		there     int
	}{
		"4.4/3 after the create":  {"something is there, and no state of it", "conform6", false, "crash-after-create", 1},
		"4.4/3 before the create": {"nothing exists, and that is unknown", "conform6", false, "crash-before-create", 0},
		"4.4/3 after the update":  {"the state from before is kept", "conform6", true, "crash-after-update", 1},
		"4.4/3 of protocol 5":     {"the same", "conform5", false, "crash-after-create", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := ownWorld(t, tc.provider, cloud.Options{})
			s := about(t, w, tc.provider+"_thing")
			prior := s.Type.Null()
			if tc.update {
				prior = s.create(attrs{"note": "old"})
			}
			c := s.config(attrs{"note": "new"})
			p := s.plan(prior, c)
			s.command(tc.behaviour)
			o := s.Type.Apply(t.Context(), prior, p, c.Written)
			if _, ok := errors.AsType[*provider.UnavailableError](o.Err); !ok || !diag.IsFailure(o.Err, diag.Lost) {
				t.Errorf("lost is %t, error %v", diag.IsFailure(o.Err, diag.Lost), o.Err)
			}
			if o.State.Exists() != tc.update || o.State.Tainted {
				t.Errorf("%s: state %+v", tc.reason, o.State)
			}
			ids, err := w.cloud.IDs(tc.provider + "_thing")
			must(t, err)
			if len(ids) != tc.there {
				t.Errorf("%s: there is %v", tc.reason, ids)
			}
			// The next caller gets another process.
			s.command("none")
			s = about(t, w, tc.provider+"_thing")
			s.plan(prior, c)
		})
	}
	t.Run("4.2 while it plans", func(t *testing.T) {
		t.Parallel()
		s := about(t, ownWorld(t, "conform6", cloud.Options{}), "conform6_thing")
		s.command("plan-crash")
		_, _, err := s.Type.Plan(t.Context(), s.Type.Null(), s.config(nil), false)
		if !diag.IsFailure(err, diag.Unreachable) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("4.4/3 by another caller", func(t *testing.T) {
		t.Parallel()
		s := about(t, ownWorld(t, "conform6", cloud.Options{}), "conform6_thing")
		s.command("hang-in-create")
		done := s.applyLater(t.Context())
		await(t, "the apply to begin", func() bool { return len(s.calls("ApplyResourceChange")) == 1 })
		p, err := os.FindProcess(s.calls("ApplyResourceChange")[0].PID)
		must(t, err)
		must(t, p.Kill())
		if o := <-done; !diag.IsFailure(o.Err, diag.Lost) || o.State.Exists() {
			t.Errorf("lost is %t, error %v", diag.IsFailure(o.Err, diag.Lost), o.Err)
		}
	})
}

// applyLater creates the subject in the background. internal/instance never cancels an apply. The lease sees the end of
// ctx as from a caller that does.
func (s *subject) applyLater(ctx context.Context) <-chan instance.Outcome {
	s.Helper()
	c := s.config(nil)
	p := s.plan(s.Type.Null(), c)
	done := make(chan instance.Outcome, 1)
	ty := s.Type
	ty.Provider = givingUp{s.lease, ctx}
	go func() { done <- ty.Apply(ctx, s.Type.Null(), p, c.Written) }()
	return done
}

// givingUp is a lease whose applies have a context that ends.
type givingUp struct {
	tfprotov6.ProviderServer
	ctx context.Context
}

func (g givingUp) ApplyResourceChange(_ context.Context, req *tfprotov6.ApplyResourceChangeRequest) (*tfprotov6.ApplyResourceChangeResponse, error) {
	return g.ProviderServer.ApplyResourceChange(g.ctx, req)
}

// TestStop cancels an apply. The pool asks the provider to stop, and the provider's answer counts.
func TestStop(t *testing.T) {
	t.Parallel()
	t.Run("4.1 by its caller", func(t *testing.T) {
		t.Parallel()
		w := ownWorld(t, "conform6", cloud.Options{})
		s := about(t, w, "conform6_thing")
		s.command("hang-in-create")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := s.applyLater(ctx)
		await(t, "the apply to begin", func() bool { return len(s.calls("ApplyResourceChange")) == 1 })
		cancel()
		o := stopped(t, done)
		// The call was not cut off, because its answer arrived.
		if diag.IsFailure(o.Err, diag.Lost) || !o.State.Exists() || !o.State.Tainted {
			t.Errorf("lost is %t, state %+v", diag.IsFailure(o.Err, diag.Lost), o.State)
		}
		refused(t, o.Err, "Stopped")
		if n := len(w.calls(t, "StopProvider", "")); n != 1 {
			t.Errorf("asked to stop %d times", n)
		}
	})
	t.Run("4.1 by the end of the pool", func(t *testing.T) {
		t.Parallel()
		w := ownWorld(t, "conform6", cloud.Options{})
		s := about(t, w, "conform6_thing")
		s.command("hang-in-create")
		done := s.applyLater(t.Context())
		await(t, "the apply to begin", func() bool { return len(s.calls("ApplyResourceChange")) == 1 })
		closed := make(chan error, 1)
		go func() { closed <- w.pool.Close(context.Background()) }()
		o := stopped(t, done)
		refused(t, o.Err, "Stopped")
		if !s.lease.Stopped() {
			t.Error("the lease does not say that the answer came after a stop")
		}
		s.lease.Release()
		must(t, <-closed)
	})
	t.Run("4.1 not during the call of another caller", func(t *testing.T) {
		t.Parallel()
		w := ownWorld(t, "conform6", cloud.Options{})
		one := about(t, w, "conform6_thing")
		one.command("hang-in-create")
		other := about(t, w, "conform6_thing")
		other.name = "other"
		other.command("hang-in-create")
		gone, cancel := context.WithCancel(t.Context())
		first := one.applyLater(gone)
		wanted, end := context.WithCancel(t.Context())
		defer end()
		second := other.applyLater(wanted)
		await(t, "both to begin", func() bool { return len(w.calls(t, "ApplyResourceChange", "")) == 2 })
		cancel()
		select {
		case o := <-first:
			t.Fatalf("the process was stopped under a call that is still wanted: %v", o.Err)
		case <-time.After(300 * time.Millisecond): // the waiting call polls six times
		}
		if n := len(w.calls(t, "StopProvider", "")); n != 0 {
			t.Fatalf("asked to stop %d times", n)
		}
		end()
		refused(t, stopped(t, first).Err, "Stopped")
		refused(t, stopped(t, second).Err, "Stopped")
	})
}

func stopped(t *testing.T, done <-chan instance.Outcome) instance.Outcome {
	t.Helper()
	select {
	case o := <-done:
		return o
	case <-time.After(waitLimit):
		t.Fatal("the apply goes on")
		return instance.Outcome{}
	}
}

func TestLargeSchema(t *testing.T) {
	if testing.Short() {
		t.Skip("a schema of 30 MB takes seconds")
	}
	t.Parallel()
	w := ownWorld(t, "conform6", cloud.Options{PaddingMB: 30})
	s := about(t, w, "conform6_thing")
	if n := len(s.lease.Schema.Resources); n < 100 {
		t.Errorf("4.1: the schema has %d types", n)
	}
	s.create(nil)
}

func TestTooLargeSchema(t *testing.T) {
	if testing.Short() {
		t.Skip("a schema of 70 MB takes seconds")
	}
	t.Parallel()
	w := ownWorld(t, "conform6", cloud.Options{PaddingMB: 70})
	_, err := w.pool.Schema(t.Context(), w.pkg)
	refused(t, err, "is too large")
}

func TestConfiguredOnce(t *testing.T) {
	t.Parallel()
	w := ownWorld(t, "conform6", cloud.Options{})
	for range 3 {
		s := about(t, w, "conform6_thing")
		s.create(nil)
	}
	calls := w.calls(t, "ConfigureProvider", "")
	if len(calls) != 1 || calls[0].Detail == "" {
		t.Errorf("4.2: configured %d times: %+v", len(calls), calls)
	}
	_, err := w.pool.Acquire(t.Context(), w.pkg, provider.Configuration{Key: "bad", Config: cty.ObjectVal(map[string]cty.Value{"directory": cty.StringVal("/dev/null/no")})})
	if err == nil {
		t.Error("4.2: a configuration that the provider refuses is accepted")
	}
}
