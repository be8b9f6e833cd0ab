package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/hykube/hykube/server/engine"
	enumspb "go.temporal.io/api/enums/v1"
)

func TestZZ(t *testing.T) {
	for round := range 25 {
		e := start(t, engine.Config{DataDir: t.TempDir()})
		sw := work(t, e)
		var worst time.Duration
		for i := range 20 {
			b := time.Now()
			r := run(t, e.Client(), fmt.Sprintf("g-%d", i), greet, "x")
			startTook := time.Since(b)
			_ = r.Get(t.Context(), nil)
			d := time.Since(b)
			worst = max(worst, d)
			if d > 400*time.Millisecond {
				fmt.Println("SLOW round", round, "i", i, d, "start", startTook)
				it := e.Client().GetWorkflowHistory(t.Context(), r.GetID(), r.GetRunID(), false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
				for it.HasNext() {
					ev, _ := it.Next()
					fmt.Println("   ", ev.EventTime.AsTime().Sub(b), ev.EventType)
				}
				if i > 5 { break }
			}
		}
		fmt.Println("round", round, "worst", worst)
		sw()
		stop(t, e)
	}
}
