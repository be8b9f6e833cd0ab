package workflow

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hykube/hykube/internal/ownership"
)

func TestPrintWorkflows(t *testing.T) {
	next := time.Date(2026, 11, 28, 2, 0, 0, 0, time.UTC)
	var out bytes.Buffer
	err := printWorkflows(&out, ownership.List{
		Workflows: []ownership.Workflow{{ID: "www\x1b[2J", Type: "BlueGreen", TaskQueue: "bluegreen", StartedBy: "alice", StartedAt: time.Now()}},
		Schedules: []ownership.Schedule{
			{ID: "nightly", Type: "BlueGreen", TaskQueue: "bluegreen", Owner: "bob", Next: &next},
			{ID: "old", Type: "BlueGreen", TaskQueue: "bluegreen", Owner: "mallory", Paused: true, Note: "she may not"},
		},
	})
	want := `WORKFLOW     TYPE        TASK QUEUE   STARTED BY   SCHEDULE   AGE
www\x1b[2J   BlueGreen   bluegreen    alice        -          0s

SCHEDULE   TYPE        TASK QUEUE   OWNER     NEXT RUN
nightly    BlueGreen   bluegreen    bob       2026-11-28T02:00:00Z
old        BlueGreen   bluegreen    mallory   paused: she may not
`
	if d := cmp.Diff(want, out.String()); err != nil || d != "" {
		t.Errorf("%v\n%s", err, d)
	}
}
