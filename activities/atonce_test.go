package activities

import (
	"context"
	"testing"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/ledger/ledgertest"
	"github.com/hykube/hykube/internal/provider"
	"github.com/hykube/hykube/internal/resource"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
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

// tokenCloud is a cloud with an ephemeral resource. closing is called before it is closed.
type tokenCloud struct {
	*cloud
	tokens  scenarioProvider
	closing func()
}

func (c tokenCloud) ValidateEphemeralResourceConfig(ctx context.Context, r *tfprotov6.ValidateEphemeralResourceConfigRequest) (*tfprotov6.ValidateEphemeralResourceConfigResponse, error) {
	return c.tokens.ValidateEphemeralResourceConfig(ctx, r)
}

func (c tokenCloud) OpenEphemeralResource(ctx context.Context, r *tfprotov6.OpenEphemeralResourceRequest) (*tfprotov6.OpenEphemeralResourceResponse, error) {
	return c.tokens.OpenEphemeralResource(ctx, r)
}

func (c tokenCloud) CloseEphemeralResource(ctx context.Context, r *tfprotov6.CloseEphemeralResourceRequest) (*tfprotov6.CloseEphemeralResourceResponse, error) {
	c.closing()
	return c.tokens.CloseEphemeralResource(ctx, r)
}

// TestTheAnswerIsRecordedBeforeAnEphemeralResourceIsClosed creates an instance of a ResourceSet with an ephemeral resource. Its close
// may take a minute, so the answer must be recorded before. Otherwise a crash in that minute would lose the answer.
func TestTheAnswerIsRecordedBeforeAnEphemeralResourceIsClosed(t *testing.T) {
	const object = "test-thing/web[0]"
	sc := newCrashScenario(t)
	provides := cloudSchema()
	provides.Ephemerals = scenarioSchema().Ephemerals
	sc.Catalog.Put(catalog.Entry{Name: "test", Schema: provides})
	applied, closed := false, 0
	sc.provides = func(provider.Configuration) tfprotov6.ProviderServer {
		return tokenCloud{sc.cloud, scenarioProvider{cloud: &scenarioCloud{t: t}}, func() {
			if !applied {
				return
			}
			closed++
			if rec := sc.recordOf(object); !rec.Exists() || rec.Intent != nil {
				t.Errorf("the ephemeral resource is closed before the answer is recorded: %+v", rec)
			}
		}}
	}
	sc.put("ephemeral-test-token/t", m{"audience": "x"}, nil)
	sc.ProviderConfigs["team/p"] = providerConfig("team", "${ephemeral.test_token.t.value}")
	sc.ProviderConfigs["team/p"].Name = "p"
	instances("a", "1", m{"providerConfig": "p"})(sc)
	delete(sc.Stored, "team:test-thing/web[1]")
	run := sc.newRun()
	sc.until(run, stepping)
	sc.cloud.while = func() { applied = true }
	if c, err := sc.attempt(run, 0, 1, false); err != nil || c.State != v1alpha1.ChangeDone || closed != 1 {
		t.Errorf("%+v, %v; closed %d times", c, err, closed)
	}
}

// TestAChangeThatWasReadAheadIsReadAgain edits a change while the lane applies another one, on which it depends. The lane has read
// both at once by then. It must neither lose the edit nor apply what another attempt has applied.
func TestAChangeThatWasReadAheadIsReadAgain(t *testing.T) {
	for name, test := range map[string]struct {
		edit  func(*ledger.Change)
		made  int
		state v1alpha1.ChangeState
	}{
		"no edit":                       {func(*ledger.Change) {}, 1, v1alpha1.ChangeDone},
		"an edit of what is pending":    {func(c *ledger.Change) { c.Message = "edited" }, 1, v1alpha1.ChangeDone},
		"another attempt has ended":     {func(c *ledger.Change) { c.State, c.Message = v1alpha1.ChangeDone, "edited" }, 0, v1alpha1.ChangeDone},
		"another attempt has failed":    {func(c *ledger.Change) { c.State, c.Message = v1alpha1.ChangeFailed, "edited" }, 0, v1alpha1.ChangeFailed},
		"another attempt has been here": {func(c *ledger.Change) { c.State, c.StartedAt = v1alpha1.ChangeRunning, changes.Now() }, 1, v1alpha1.ChangeDone},
	} {
		t.Run(name, func(t *testing.T) {
			sc := newCrashScenario(t)
			sc.lane = true
			sc.put("test-thing/a", m{"name": "a", "size": "1"}, nil)
			sc.put("test-thing/b", m{"name": "b", "uses": "${test_thing.a.id}"}, nil)
			run := sc.newRun()
			sc.until(run, stepping)
			b := 0
			if sc.changeOf(run, 0).Object.Name == "a" {
				b = 1
			}
			sc.cloud.while = func() {
				c := sc.changeOf(run, b)
				test.edit(c)
				if err := sc.Ledger.SaveChange(t.Context(), sc.plans.get(run.Name).UID, c); err != nil {
					t.Error(err)
				}
			}
			if _, err := sc.applier.Lane(t.Context(), run.Plan, unreported); err != nil {
				t.Fatal(err)
			}
			c := sc.changeOf(run, b)
			if c.State != test.state || sc.cloud.made["b"] != test.made || test.made == 0 && c.Message != "edited" {
				t.Errorf("%s %q, created %d times; want %s, %d times", c.State, c.Message, sc.cloud.made["b"], test.state, test.made)
			}
			if p := sc.plans.get(run.Name).Status.Progress; p != nil && p.Running != 0 {
				t.Errorf("progress: %+v", p)
			}
		})
	}
}
