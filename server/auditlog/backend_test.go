package auditlog

import (
	"testing"
	"time"

	auditinternal "k8s.io/apiserver/pkg/apis/audit"

	"github.com/hykube/hykube/internal/audit"
	"github.com/hykube/hykube/internal/diag"
)

type sink []*auditinternal.Event

func (s *sink) ProcessEvents(events ...*auditinternal.Event) bool {
	*s = append(*s, events...)
	return true
}

// TestInterruptedCallHasNoSecondBeginning records the outcome of a call that an earlier process of the server has begun.
func TestInterruptedCallHasNoSecondBeginning(t *testing.T) {
	var log sink
	began := time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)
	end, err := Record(&log)(audit.Call{Operation: audit.Create, Began: began})
	if err != nil {
		t.Fatal(err)
	}
	end(&diag.Failure{Kind: diag.Lost})
	if len(log) != 1 || log[0].Stage != auditinternal.StageResponseComplete || log[0].Annotations[audit.Prefix+"outcome"] != "Unknown" ||
		!log[0].RequestReceivedTimestamp.Time.Equal(began) || log[0].Annotations["apiserver.latency.k8s.io/total"] != "" {
		t.Errorf("%+v; want one record, of an unknown outcome, without a duration", log)
	}
}
