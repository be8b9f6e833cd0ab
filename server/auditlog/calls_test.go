package auditlog

import (
	"errors"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/audit"
	"github.com/hykube/hykube/internal/diag"
)

// TestCalls lists the calls after a record: one that began before it and ended after it, and one that did not end.
func TestCalls(t *testing.T) {
	w := newTestLog(t)
	l := w.open()
	var events sink
	record := Record(&events)
	begin := func(name string) func(error) {
		end, err := record(audit.Call{
			Operation: audit.Create, Type: "sim_network", Cause: audit.Cause{Plan: "p1"},
			Object: v1alpha1.ObjectReference{APIVersion: "sim.hykube.io/v1", Namespace: "prod", Name: name},
		})
		if err != nil {
			t.Fatal(err)
		}
		return end
	}
	flush := func() {
		for _, ev := range events {
			line, err := runtime.Encode(encoder, ev)
			if err == nil {
				_, err = l.Write(line)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		events = nil
	}
	begin("known")(nil)
	across := begin("across")
	flush()
	head := l.Head().Sequence
	w.write(l, 3)
	across(nil)
	begin("refused")(errors.New("no"))
	begin("lost")(&diag.Failure{Kind: diag.Lost})
	begin("killed")
	flush()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := Calls(w.cfg.Path, head)
	if err != nil {
		t.Fatal(err)
	}
	want := []Call{{Name: "across", Outcome: "Succeeded"}, {Name: "refused", Outcome: "Failed"}, {Name: "lost", Outcome: "Unknown"}, {Name: "killed"}}
	for i := range want {
		want[i].Operation, want[i].Type, want[i].Namespace, want[i].Plan = audit.Create, "sim_network", "prod", "p1"
	}
	if diff := gocmp.Diff(want, got, cmpopts.IgnoreFields(Call{}, "Began")); diff != "" {
		t.Error(diff)
	}
	if all, err := Calls(w.cfg.Path, 0); err != nil || len(all) != 5 || all[0].Name != "known" || all[0].Began.IsZero() {
		t.Errorf("%+v, %v", all, err)
	}
}
