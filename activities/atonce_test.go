package activities

import (
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/ledger/ledgertest"
	"github.com/hykube/hykube/internal/resource"
)

// TestTheOutcomeOfAnInstanceIsOneTransaction creates an instance of a ResourceSet. After the provider's answer, the server writes
// its record, its status and the change at once. If another writer changes one of them meanwhile, it writes them one after
// the other, and the answer is recorded in any case.
func TestTheOutcomeOfAnInstanceIsOneTransaction(t *testing.T) {
	const object = "test-thing/web[0]"
	for name, test := range map[string]struct {
		meanwhile func(*crashScenario) error
		// others is the number of transactions of the other writer, and batches that of the server.
		others, batches int
	}{
		"no other writer": {func(*crashScenario) error { return nil }, 0, 1},
		"another writer of the status": {func(sc *crashScenario) error {
			return sc.Ledger.SaveStatus(t.Context(), ledger.Status{StatusKey: ledger.StatusKey{Namespace: "team", Set: "s", UID: sc.Stored["team:"+object].GetUID()}, Value: []byte(`{}`)})
		}, 1, 2},
		"another writer of the record": {func(sc *crashScenario) error {
			rec := sc.recordOf(object)
			rec.Private = []byte("another")
			return sc.Ledger.Save(t.Context(), rec)
		}, 1, 2},
	} {
		t.Run(name, func(t *testing.T) {
			sc := newCrashScenario(t)
			kv := ledgertest.New()
			sc.ledgerKV = crashStore{kv, sc.injector, sc.World}
			sc.Ledger = ledger.New(sc.ledgerKV)
			sc.restart()
			instances("a", "1", nil)(sc)
			delete(sc.Stored, "team:test-thing/web[1]")
			run := sc.newRun()
			sc.until(run, stepping)
			before := 0
			sc.cloud.while = func() { before = kv.Batches }
			sc.ending = func() {
				if err := test.meanwhile(sc); err != nil {
					t.Error(err)
				}
				before += test.others
			}
			c, err := sc.attempt(run, 0, 1, false)
			rec, status := sc.recordOf(object), resource.StatusOf(sc.Stored["team:"+object])
			if err != nil || c.State != v1alpha1.ChangeDone || !rec.Exists() || rec.Intent != nil || len(rec.Private) != 0 || !status.Good() {
				t.Errorf("%s, %v, recorded %+v, status %+v", c.State, err, rec, status)
			}
			if got := kv.Batches - before; got != test.batches {
				t.Errorf("%d transactions after the answer, want %d", got, test.batches)
			}
		})
	}
}
