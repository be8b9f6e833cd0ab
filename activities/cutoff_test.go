package activities

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/hykube/hykube/activities/activitiestest"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/provider"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// stoppingCloud is the cloud of a provider that receives a stop: the cloud makes the next change, and the provider
// answers that it was cut off.
type stoppingCloud struct {
	*cloud
	stopped, answered bool
}

func (c *stoppingCloud) Stop() {}

func (c *stoppingCloud) Stopped() bool { return c.stopped }

func (c *stoppingCloud) ApplyResourceChange(ctx context.Context, r *tfprotov6.ApplyResourceChangeRequest) (*tfprotov6.ApplyResourceChangeResponse, error) {
	resp, err := c.cloud.ApplyResourceChange(ctx, r)
	if err != nil || c.answered || !c.stopped {
		return resp, err
	}
	c.answered = true
	return &tfprotov6.ApplyResourceChangeResponse{NewState: r.PriorState, Diagnostics: activitiestest.Refusal("Post \"http://cloud\": context canceled")}, nil
}

// TestCallCutOffByAStop stops the provider during each kind of change. Nothing is created twice, and the record is
// correct.
func TestCallCutOffByAStop(t *testing.T) {
	type m = map[string]any
	cbd := m{"createBeforeDestroy": true}
	for name, tc := range map[string]struct {
		lifecycle m
		// before is false if nothing exists before the change. change makes the change.
		before bool
		change func(*crashScenario)
		state  v1alpha1.ChangeState
		made   map[string]int
		there  []string
	}{
		"create": {change: func(sc *crashScenario) { sc.put("test-thing/a", m{"name": "a", "size": "1"}, nil) },
			state: v1alpha1.ChangeUnknown, made: map[string]int{"a": 1}, there: []string{"a 1"}},
		"replace": {before: true, change: func(sc *crashScenario) { sc.put("test-thing/a", m{"name": "a2", "size": "1"}, nil) },
			state: v1alpha1.ChangeUnknown, made: map[string]int{"a": 1, "a2": 1}, there: []string{"a2 1"}},
		"replace, create first": {before: true, lifecycle: cbd, change: func(sc *crashScenario) { sc.put("test-thing/a", m{"name": "a2", "size": "1"}, cbd) },
			state: v1alpha1.ChangeUnknown, made: map[string]int{"a": 1, "a2": 1}, there: []string{"a 1", "a2 1"}},
		"update": {before: true, change: func(sc *crashScenario) { sc.put("test-thing/a", m{"name": "a", "size": "2"}, nil) },
			state: v1alpha1.ChangeDone, made: map[string]int{"a": 1}, there: []string{"a 2"}},
		"delete": {before: true, change: func(sc *crashScenario) { sc.delete("test-thing/a") },
			state: v1alpha1.ChangeDone, made: map[string]int{"a": 1}, there: []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			sc := newCrashScenario(t)
			if tc.before {
				sc.put("test-thing/a", m{"name": "a", "size": "1"}, tc.lifecycle)
				sc.apply()
			}
			stopping := &stoppingCloud{cloud: sc.cloud}
			sc.provides = func(provider.Configuration) tfprotov6.ProviderServer { return stopping }
			tc.change(sc)
			sc.cloud.while = func() {
				// The first half of a replacement succeeds. The stop comes during the create.
				if name == "replace" {
					sc.cloud.while = func() { stopping.stopped = true }
					return
				}
				stopping.stopped = true
			}
			po := sc.apply()
			c, err := sc.Ledger.Change(t.Context(), po.UID, 0)
			if err != nil || c.State != tc.state {
				t.Errorf("%v: %s %q, want %s", err, c.State, c.Message, tc.state)
			}
			stopping.stopped = false
			sc.restart()
			sc.partial = true
			sc.apply()
			if diff := cmp.Diff(tc.made, sc.cloud.made); diff != "" {
				t.Errorf("made (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.there, sc.cloud.there()); diff != "" {
				t.Errorf("there (-want +got):\n%s", diff)
			}
			if tc.state != v1alpha1.ChangeUnknown {
				return
			}
			if rec := sc.recordOf("test-thing/a"); rec.Intent == nil || rec.Intent.Action != v1alpha1.ActionCreate {
				t.Errorf("the record of %v forgot that a create was begun: %+v", slices.Sorted(maps.Keys(tc.made)), rec)
			}
		})
	}
}
