package controller

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cron"
	"github.com/hykube/hykube/workflows"
)

// Schedules keeps a Temporal Schedule for each schedule in a Stack. A Schedule starts a workflow, which asks the stack
// for a plan or a drift check. After a downtime, Temporal starts one workflow for the times that were missed.
type Schedules struct {
	Temporal client.ScheduleClient

	mu sync.Mutex
	// kept holds the Schedules that this process wrote, by ID.
	kept map[string]keptSchedule
}

// keptSchedule is a Temporal Schedule that had a note at a time. The note has a digest of the Schedule.
type keptSchedule struct {
	note string
	at   time.Time
}

// scheduleCheck is the time after which a Schedule is written again. One that exists stays. Temporal may have lost it,
// as after a restore of its database.
const scheduleCheck = 10 * time.Minute

// schedule describes one Temporal Schedule of a Stack.
type schedule struct {
	Stack      workflows.Stack
	Workflow   string
	Expression string
	Zone       string
	Suspended  bool
}

func (s schedule) id() string { return s.Stack.ScheduleID(s.Workflow) }

// note returns the note of the Temporal Schedule. Its digest identifies the spec for which the Schedule was written.
func (s schedule) note() string {
	text, _ := json.Marshal(s) // it has only strings and booleans
	sum := sha256.Sum256(text)
	return "Written by Hykube from the Stack; a change there replaces it. Digest " + hex.EncodeToString(sum[:8])
}

// wanted returns the schedules of a stack.
func wanted(s *v1alpha1.Stack) (out []schedule) {
	ref := workflows.Stack{Namespace: s.Namespace, Name: s.Name, UID: string(s.UID)}
	if p := s.Spec.Plan; p.Schedule != "" {
		out = append(out, schedule{ref, workflows.ScheduledPlanName, p.Schedule, p.TimeZone, s.Spec.Suspend})
	}
	if d := s.Spec.Drift; d != nil && d.Schedule != "" {
		out = append(out, schedule{ref, workflows.DriftCheckName, d.Schedule, d.TimeZone, s.Spec.Suspend})
	}
	return out
}

// Ensure creates, updates and deletes the Temporal Schedules of a stack. Call it again after scheduleCheck if the stack
// has a schedule.
func (k *Schedules) Ensure(ctx context.Context, s *v1alpha1.Stack) error {
	want := map[string]schedule{}
	for _, w := range wanted(s) {
		want[w.id()] = w
	}
	for _, name := range []string{workflows.ScheduledPlanName, workflows.DriftCheckName} {
		id := workflows.Stack{Namespace: s.Namespace, Name: s.Name, UID: string(s.UID)}.ScheduleID(name)
		w, ok := want[id]
		kept := k.keptOf(id)
		switch {
		case !ok && kept.note == "", ok && kept.note == w.note() && time.Since(kept.at) < scheduleCheck:
			continue
		case !ok:
			if err := k.delete(ctx, id); err != nil {
				return err
			}
		default:
			if err := k.write(ctx, w); err != nil {
				return fmt.Errorf("write the schedule %s: %w", id, err)
			}
			k.keep(id, w.note())
		}
	}
	return nil
}

func (k *Schedules) keptOf(id string) keptSchedule {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.kept[id]
}

// keep notes that a Schedule exists; an empty note says that it does not.
func (k *Schedules) keep(id, note string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.kept == nil {
		k.kept = map[string]keptSchedule{}
	}
	if note == "" {
		delete(k.kept, id)
		return
	}
	k.kept[id] = keptSchedule{note, time.Now()}
}

// write creates or updates a Schedule.
func (k *Schedules) write(ctx context.Context, w schedule) error {
	times, err := cron.Parse(w.Expression, w.Zone)
	if err != nil {
		return err // the server accepts valid ones only
	}
	spec := client.ScheduleSpec{CronExpressions: []string{w.Expression}, TimeZoneName: w.Zone,
		Jitter: times.Jitter(time.Now())}
	_, err = k.Temporal.Create(ctx, client.ScheduleOptions{
		ID: w.id(), Spec: spec, Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_SKIP, Paused: w.Suspended, Note: w.note(),
		Action: &client.ScheduleWorkflowAction{
			ID: w.Workflow + "." + w.Stack.Namespace + "." + w.Stack.Name + "." + w.Stack.UID, Workflow: w.Workflow,
			Args: []any{w.Stack}, TaskQueue: workflows.TaskQueue,
			StaticSummary: fmt.Sprintf("%s %s/%s", w.Workflow, w.Stack.Namespace, w.Stack.Name),
			TypedSearchAttributes: temporal.NewSearchAttributes(
				temporal.NewSearchAttributeKeyKeyword(workflows.SearchNamespace).ValueSet(w.Stack.Namespace)),
		},
	})
	if !errors.Is(err, temporal.ErrScheduleAlreadyRunning) {
		return err
	}
	return k.Temporal.GetHandle(ctx, w.id()).Update(ctx, client.ScheduleUpdateOptions{
		DoUpdate: func(in client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
			next := in.Description.Schedule
			if next.State != nil && next.State.Note == w.note() {
				return nil, temporal.ErrSkipScheduleUpdate
			}
			next.Spec = &spec
			next.State = &client.ScheduleState{Paused: w.Suspended, Note: w.note()}
			return &client.ScheduleUpdate{Schedule: &next}, nil
		},
	})
}

func (k *Schedules) delete(ctx context.Context, id string) error {
	err := k.Temporal.GetHandle(ctx, id).Delete(ctx)
	if _, gone := errors.AsType[*serviceerror.NotFound](err); err != nil && !gone {
		return fmt.Errorf("delete the schedule %s: %w", id, err)
	}
	k.keep(id, "")
	return nil
}

// idsOf returns the IDs of the Schedules that stacks want.
func idsOf(stacks []*v1alpha1.Stack) map[string]bool {
	want := map[string]bool{}
	for _, s := range stacks {
		for _, w := range wanted(s) {
			want[w.id()] = true
		}
	}
	return want
}

// DeleteKept deletes the Schedules that this process wrote for stacks that no longer exist. all returns all stacks.
func (k *Schedules) DeleteKept(ctx context.Context, all func() []*v1alpha1.Stack) error {
	k.mu.Lock()
	kept := slices.Collect(maps.Keys(k.kept))
	k.mu.Unlock()
	want := idsOf(all()) // after kept, so that it has each stack of kept that exists
	for _, id := range kept {
		if want[id] {
			continue
		}
		if err := k.delete(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// DeleteOthers deletes the Schedules of stacks that do not exist, such as those that were deleted while the server was
// down. Call it before the first Ensure.
func (k *Schedules) DeleteOthers(ctx context.Context, stacks []*v1alpha1.Stack) error {
	want := idsOf(stacks)
	list, err := k.Temporal.List(ctx, client.ScheduleListOptions{PageSize: 1000})
	if err != nil {
		return fmt.Errorf("list schedules: %w", err)
	}
	for list.HasNext() {
		entry, err := list.Next()
		if err != nil {
			return fmt.Errorf("list schedules: %w", err)
		}
		if !strings.HasPrefix(entry.ID, workflows.SchedulePrefix) || want[entry.ID] {
			continue
		}
		if err := k.delete(ctx, entry.ID); err != nil {
			return err
		}
	}
	return nil
}
