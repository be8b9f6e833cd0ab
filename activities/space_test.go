package activities

import (
	"errors"
	"strings"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/ledger/ledgertest"
)

// TestFullDiskStartsNoChange runs out of space between the plan and its first step: the change fails before the
// provider is called, and a later plan makes it.
func TestFullDiskStartsNoChange(t *testing.T) {
	sc := newCrashScenario(t)
	kv := ledgertest.New()
	sc.ledgerKV = crashStore{kv, sc.injector, sc.World}
	sc.Ledger = ledger.New(sc.ledgerKV)
	sc.restart()
	things("a")(sc)
	run := sc.newRun()
	sc.until(run, stepping)
	kv.Full = errors.New("the disk is full")
	c, _ := sc.attempt(run, 0, 1, false)
	if c.State != v1alpha1.ChangeFailed || !strings.Contains(c.Message, "the disk is full") {
		t.Errorf("state %s with the message %q, want Failed and the reason", c.State, c.Message)
	}
	if len(sc.cloud.log) > 0 || sc.lost() {
		t.Errorf("calls %v, lost create %t; want neither", sc.cloud.log, sc.lost())
	}
	sc.resume(run)
	kv.Full = nil
	sc.apply()
	if sc.cloud.made["a"] != 1 {
		t.Errorf("made: %v, want a once", sc.cloud.made)
	}
}
