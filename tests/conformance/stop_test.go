package conformance

import (
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/provider"
	"github.com/hykube/hykube/tests/conformance/cloud"
)

// begin applies a create that hangs until the provider receives a stop. It returns the outcome.
func (s *subject) begin() <-chan instance.Outcome {
	s.Helper()
	s.command("hang-in-create")
	c := s.config(attrs{"note": "new"})
	p := s.plan(s.Type.Null(), c)
	ended := make(chan instance.Outcome, 1)
	go func() { ended <- s.Type.Apply(s.Context(), s.Type.Null(), p, c.Written) }()
	await(s.T, "the call to begin", func() bool { return len(s.calls("ApplyResourceChange")) == 1 })
	return ended
}

// again returns another lease of the same configuration.
func (s *subject) again() *provider.Lease {
	s.Helper()
	l, err := s.world.pool.Acquire(s.Context(), s.world.pkg, provider.Configuration{Key: "only", Config: cty.ObjectVal(map[string]cty.Value{"directory": cty.StringVal(s.world.dir)})})
	must(s.T, err)
	return l
}

// TestStopOfALease stops a lease during an apply. The call is not cut off, and its answer counts.
func TestStopOfALease(t *testing.T) {
	t.Parallel()
	s := about(t, ownWorld(t, "conform6", cloud.Options{}), "conform6_thing")
	ended := s.begin()
	if s.lease.Stopped() {
		t.Fatal("the provider was asked to stop before anybody wanted it")
	}
	s.lease.Stop()
	s.lease.Stop() // a second stop does nothing
	if !s.lease.Stopped() {
		t.Error("4.1: the provider was not asked to stop")
	}
	o := <-ended
	refused(t, o.Err, "Stopped")
	if diag.IsFailure(o.Err, diag.Lost) || !o.State.Exists() || !o.State.Tainted {
		t.Errorf("4.4/4: what was made until then: %+v", o)
	}
	if n := len(s.world.calls(t, "StopProvider", "")); n != 1 {
		t.Errorf("4.1: %d calls to stop", n)
	}
	// A process may be unusable after a stop.
	next := s.again()
	defer next.Release()
	calls := s.world.calls(t, "ConfigureProvider", "")
	if len(calls) != 2 || calls[0].PID == calls[1].PID || next.Stopped() {
		t.Errorf("4.1: the next to come gets %+v", calls)
	}
}

// TestStopWaitsForOthers shares the process with a lease whose calls are still wanted, because a stop affects all calls
// of a process.
func TestStopWaitsForOthers(t *testing.T) {
	t.Parallel()
	s := about(t, ownWorld(t, "conform6", cloud.Options{}), "conform6_thing")
	other := s.again()
	ended := s.begin()
	s.lease.Stop()
	if s.lease.Stopped() || other.Stopped() {
		t.Error("4.1: the provider was asked to stop while another caller needs it")
	}
	newcomer := s.again()
	defer newcomer.Release()
	if calls := s.world.calls(t, "ConfigureProvider", ""); len(calls) != 2 {
		t.Errorf("4.1: whoever comes gets a process that is about to be stopped: %+v", calls)
	}
	other.Release()
	refused(t, (<-ended).Err, "Stopped")
	if newcomer.Stopped() {
		t.Error("4.1: another process was asked to stop")
	}
	s.lease.Release()
	s.lease.Stop() // a stop after the release does nothing
	if n := len(s.world.calls(t, "StopProvider", "")); n != 1 {
		t.Errorf("4.1: %d calls to stop", n)
	}
}
