package activities

import (
	"errors"
	"strings"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/ledger/ledgertest"
)

// TestFullDiskStartsNoChange runs out of space between the plan and its first step: the change fails before the provider is called, and a later
// plan makes it.
func TestFullDiskStartsNoChange(t *testing.T) {
	tn := newCrashScenario(t)
	kv := ledgertest.New()
	tn.Ledger = ledger.New(crashStore{kv, tn.injector})
	tn.restart()
	things("a")(tn)
	run := tn.newRun()
	tn.until(run, stepping)
	kv.Full = errors.New("the disk is full")
	c, _ := tn.attempt(run, 0, 1, false)
	if c.State != v1alpha1.ChangeFailed || !strings.Contains(c.Message, "the disk is full") {
		t.Errorf("state %s with the message %q, want Failed and the reason", c.State, c.Message)
	}
	if len(tn.cloud.log) > 0 || tn.lost() {
		t.Errorf("calls %v, lost create %t; want neither", tn.cloud.log, tn.lost())
	}
	tn.resume(run)
	kv.Full = nil
	tn.apply()
	if tn.cloud.made["a"] != 1 {
		t.Errorf("made: %v, want a once", tn.cloud.made)
	}
}
