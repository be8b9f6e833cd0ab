package activities

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/hykube/hykube/activities/activitiestest"
	"github.com/hykube/hykube/activities/applying"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/ledger/ledgertest"
	"github.com/hykube/hykube/internal/session"
	"github.com/hykube/hykube/internal/store"
)

// TestFullDiskStartsNoChange runs out of space between the plan and its first step: the change waits, and the provider is
// not called. With space again, the same plan makes it.
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
	c, err := sc.attempt(run, 0, 99, false)
	if _, again := errors.AsType[*applying.RetryError](err); !again || c.State != v1alpha1.ChangeRunning || !strings.Contains(c.Message, "the disk is full") {
		t.Errorf("state %s with the message %q, %v; want another attempt and the reason", c.State, c.Message, err)
	}
	if len(sc.cloud.log) > 0 || sc.lost() {
		t.Errorf("calls %v, lost create %t; want neither", sc.cloud.log, sc.lost())
	}
	kv.Full = nil
	sc.resume(run)
	if sc.cloud.made["a"] != 1 || sc.changeOf(run, 0).State != v1alpha1.ChangeDone {
		t.Errorf("made: %v, the change is %s; want a once", sc.cloud.made, sc.changeOf(run, 0).State)
	}
}

// failingConfigs are ProviderConfigs and Secrets that cannot be read for a while.
type failingConfigs struct {
	activitiestest.FakeConfigs
	fails *int
}

func (c failingConfigs) fail() error {
	if *c.fails > 0 {
		*c.fails--
		return store.Failed(errors.New("the connection was cut"))
	}
	return nil
}

func (c failingConfigs) Get(ctx context.Context, namespace, name string) (*v1alpha1.ProviderConfig, error) {
	if err := c.fail(); err != nil {
		return nil, err
	}
	return c.FakeConfigs.Get(ctx, namespace, name)
}

func (c failingConfigs) SecretData(ctx context.Context, namespace, name string) (map[string][]byte, error) {
	if err := c.fail(); err != nil {
		return nil, err
	}
	return c.FakeConfigs.SecretData(ctx, namespace, name)
}

// TestAFailedReadOfTheStoreFailsNoChange cuts reads of the store before the call of a provider, more often than a call of
// a provider is tried.
func TestAFailedReadOfTheStoreFailsNoChange(t *testing.T) {
	for reason, spec := range map[string]m{
		"of a ProviderConfig": {"name": "a", "size": "1"},
		"of a Secret":         {"name": "a", "size": "${secret.s.size}"},
	} {
		t.Run(reason, func(t *testing.T) {
			sc := newCrashScenario(t)
			sc.Config(nil)
			sc.Data["secrets/team/s"] = map[string][]byte{"size": []byte("1")}
			fails := 0
			sc.Configs = failingConfigs{activitiestest.FakeConfigs{World: sc.World}, &fails}
			sc.restart()
			sc.put("test-thing/a", spec, nil)
			run := sc.newRun()
			sc.until(run, stepping)
			fails = 3 * session.Attempts
			for attempt := 1; fails > 0; attempt++ {
				left := fails
				c, err := sc.attempt(run, 0, attempt, false)
				if _, again := errors.AsType[*applying.RetryError](err); !again || c.State != v1alpha1.ChangeRunning || fails == left {
					t.Fatalf("attempt %d: the change is %s: %s, %v", attempt, c.State, c.Message, err)
				}
				if !strings.Contains(c.Message, "waits for the server's database") || !strings.Contains(c.Message, "the connection was cut") {
					t.Errorf("attempt %d says %q", attempt, c.Message)
				}
			}
			sc.resume(run)
			if sc.cloud.made["a"] != 1 || sc.changeOf(run, 0).State != v1alpha1.ChangeDone {
				t.Errorf("made: %v, the change is %s: %s", sc.cloud.made, sc.changeOf(run, 0).State, sc.changeOf(run, 0).Message)
			}
		})
	}
}
