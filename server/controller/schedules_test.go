package controller

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
)

// knownSchedules is a Temporal server that has the Schedules with these IDs.
type knownSchedules struct {
	client.ScheduleClient
	ids []string
}

func (k *knownSchedules) Create(_ context.Context, o client.ScheduleOptions) (client.ScheduleHandle, error) {
	if slices.Contains(k.ids, o.ID) {
		return nil, temporal.ErrScheduleAlreadyRunning
	}
	k.ids = append(k.ids, o.ID)
	return nil, nil
}

func (k *knownSchedules) GetHandle(context.Context, string) client.ScheduleHandle { return unchanged{} }

// unchanged is a Schedule that has the note of the Stack.
type unchanged struct{ client.ScheduleHandle }

func (unchanged) Update(context.Context, client.ScheduleUpdateOptions) error { return nil }

// TestAScheduleThatTemporalLostIsWrittenAgain loses the Schedules of a stack, as a restore of Temporal's database does.
func TestAScheduleThatTemporalLostIsWrittenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &knownSchedules{}
		schedules := &Schedules{Temporal: server}
		stack := &v1alpha1.Stack{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "s", UID: "u"}}
		stack.Spec.Plan.Schedule, stack.Spec.Drift = "0 3 * * *", &v1alpha1.StackDrift{Schedule: "0 * * * *"}
		for _, step := range []struct {
			after time.Duration
			lost  bool
			want  int
		}{{0, false, 2}, {scheduleCheck, false, 2}, {time.Minute, true, 0}, {scheduleCheck, false, 2}} {
			time.Sleep(step.after)
			if step.lost {
				server.ids = nil
			}
			if err := schedules.Ensure(t.Context(), stack); err != nil || len(server.ids) != step.want {
				t.Errorf("after %s, the server has %v, %v; want %d", step.after, server.ids, err, step.want)
			}
		}
	})
}
